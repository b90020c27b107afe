package dev.nereid.repository;

/** The location of a model, in a directory or in a remote repository. Immutable. */
public sealed interface ModelLocation {
    String name();

    /** Returns the {@linkplain ModelKey key} of the model. */
    String key();

    String repository();

    /**
     * Returns a directory with the model's files, after the copy of a remote one. Blocks meanwhile.
     *
     * @return the directory, leased to the caller
     * @throws dev.nereid.api.InferenceException if the model cannot be copied
     */
    ModelCopy fetch();

    /** A model in a directory. */
    record Local(ModelDirectory directory) implements ModelLocation {
        @Override
        public String name() {
            return directory.name();
        }

        @Override
        public String key() {
            return directory.key();
        }

        @Override
        public String repository() {
            return directory.root().toString();
        }

        @Override
        public ModelCopy fetch() {
            return ModelCopy.inPlace(directory);
        }
    }

    /**
     * A model in a remote repository.
     *
     * @param fingerprint the fingerprint of its objects
     */
    record Remote(RepositoryRoot root, String name, String fingerprint, String key) implements ModelLocation {
        @Override
        public String repository() {
            return root.location();
        }

        @Override
        public ModelCopy fetch() {
            return root.fetch(name).as(key);
        }
    }
}
