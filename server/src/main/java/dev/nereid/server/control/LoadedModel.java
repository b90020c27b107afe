package dev.nereid.server.control;

import inference.ModelConfig;

/**
 * What a model was last loaded from. Immutable.
 *
 * @param config its configuration before its backend was involved
 * @param source its files
 * @param plugin the digest of the plugin of its backend
 */
record LoadedModel(ModelConfig config, ModelSource source, String plugin) {
    /** Returns whether a source has the same files and the same configuration. */
    boolean isFrom(ModelSource other) {
        return hasSameOrigin(other)
                && source.files().equals(other.files())
                && source.config().equals(other.config());
    }

    private boolean hasSameOrigin(ModelSource other) {
        return source.key().equals(other.key())
                && source.holder().origin().equals(other.holder().origin());
    }

    /** Returns whether a version has the same files, configuration aside. */
    boolean hasSameFiles(long version, ModelSource other) {
        return hasSameOrigin(other) && other.files().hasSameFiles(version, source.files());
    }

    /** Returns whether two configurations differ in nothing but instance groups and version policy. */
    static boolean differInInstancesAlone(ModelConfig one, ModelConfig other) {
        return withoutInstances(one).equals(withoutInstances(other));
    }

    private static ModelConfig withoutInstances(ModelConfig config) {
        return config.toBuilder().clearInstanceGroup().clearVersionPolicy().build();
    }
}
