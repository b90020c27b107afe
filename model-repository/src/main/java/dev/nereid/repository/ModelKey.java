package dev.nereid.repository;

import java.util.Comparator;

/**
 * Keys of models: their names, after their namespaces where a server has namespaces. Static functions only.
 *
 * <p>A namespace is the path or URL of a repository. No name contains a slash, so that the last one of a key ends the
 * namespace. Keys are texts, so that the name in a request is the key of a model where there are no namespaces.
 */
public final class ModelKey {
    /** Sorts keys by names, then by namespaces. */
    public static final Comparator<String> ORDER =
            Comparator.comparing(ModelKey::name).thenComparing(Comparator.naturalOrder());

    private ModelKey() {}

    /** Returns the key of a model in a namespace, which is the path or URL of its repository. */
    public static String of(String namespace, String name) {
        return namespace + "/" + name;
    }

    /** Returns the name of a model, as clients know it. */
    public static String name(String key) {
        return key.substring(key.lastIndexOf('/') + 1);
    }

    /** Returns the namespace of a model: the path or URL of its repository. Empty where there are no namespaces. */
    public static String namespace(String key) {
        return key.substring(0, Math.max(0, key.lastIndexOf('/')));
    }
}
