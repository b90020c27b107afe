package dev.nereid.benchmarks.python;

import dev.nereid.benchmarks.process.ModelRepositories;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes the models of this section. */
final class PythonModels {
    /** Returns its input; one request for each execution. */
    static final String IDENTITY = "identity_python";

    /** The same with {@code dynamic_batching { }}. */
    static final String BATCHED = "identity_python_batched";

    /** The same, and it waits for batches of {@link #MAX_BATCH}. */
    static final String FULL = "identity_python_full";

    /** Calls {@link ModelRepositories#IDENTITY}, which is Java. */
    static final String CALLS = "calls_python";

    static final String STREAM = "stream_python";

    static final int MAX_BATCH = 8;

    /** The file with the number of the process that runs an identity. */
    private static final String PROCESS = "process";

    private static final String TENSORS = """
            backend: "%s"
            max_batch_size: %d
            input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
            instance_group [ { count: 1 kind: KIND_CPU } ]
            """;

    private PythonModels() {}

    static void write(Path repository) throws IOException {
        identities(repository);
        identity(
                repository,
                FULL,
                "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 20000 }");
        model(repository, CALLS, "calls.py", "");
        model(repository, STREAM, "stream.py", "model_transaction_policy { decoupled: true }");
    }

    /** Writes the identity in Java, and identities in Python with the same configuration, to a repository. */
    static void identities(Path repository) throws IOException {
        ModelRepositories.write(repository, ModelRepositories.IDENTITY, TENSORS.formatted("identity", MAX_BATCH));
        identity(repository, IDENTITY, "");
        identity(repository, BATCHED, "dynamic_batching { }");
    }

    /** Writes one identity in Python, with more configuration, to a repository. */
    static void identity(Path repository, String name, String more) throws IOException {
        model(repository, name, "identity.py", more);
    }

    /** Returns the number of the process that runs an identity of a repository that is served. */
    static long process(Path repository, String name) throws IOException {
        return Long.parseLong(Files.readString(repository.resolve(name).resolve(PROCESS)));
    }

    private static void model(Path repository, String name, String program, String more) throws IOException {
        Path version = ModelRepositories.write(repository, name, TENSORS.formatted("python", MAX_BATCH) + more);
        try (InputStream content = PythonModels.class.getResourceAsStream(program)) {
            if (content == null) {
                throw new FileNotFoundException(program);
            }
            Files.copy(content, version.resolve("model.py"));
        }
    }
}
