package dev.nereid.repository.config;

import inference.ModelConfig;

/** Configurations for tests, written as they are in files. */
public final class Configs {
    private Configs() {}

    /** Reads a configuration. */
    public static ModelConfig config(String text) {
        return ModelConfigReader.parse("test/config.pbtxt", text);
    }

    /** Reads a configuration that passes every check, followed by more text. */
    public static ModelConfig valid(String more) {
        return ConfigNormalization.normalize(config("""
                name: "m"
                backend: "custom"
                max_batch_size: 8
                """ + more));
    }
}
