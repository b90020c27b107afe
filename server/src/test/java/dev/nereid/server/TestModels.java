package dev.nereid.server;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A model repository under construction. Confined to the test's thread. */
record TestModels(Path root) {
    static final String TENSORS = """
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
            """;

    /** Adds a model of the recording backend with one instance. */
    TestModels recording(String name, String more, long... versions) {
        String group = more.contains("instance_group") ? "" : "instance_group { count: 1 kind: KIND_CPU }\n";
        return model(name, "backend: \"recording\"\nmax_batch_size: 8\n" + TENSORS + group + more, versions);
    }

    TestModels model(String name, String config, long... versions) {
        try {
            for (long version : versions.length == 0 ? new long[] {1} : versions) {
                Files.createDirectories(root.resolve(name).resolve(Long.toString(version)));
            }
            if (!config.isEmpty()) {
                Files.writeString(root.resolve(name).resolve("config.pbtxt"), config);
            }
            return this;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static String parameter(String key, String value) {
        return "parameters { key: \"" + key + "\" value { string_value: \"" + value + "\" } }\n";
    }
}
