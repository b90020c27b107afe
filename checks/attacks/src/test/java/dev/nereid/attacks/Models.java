package dev.nereid.attacks;

import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import java.nio.file.Path;

/** The models under attack, most of which return their inputs. Stateless. */
final class Models {
    /** FP32 of one dimension. */
    static final String ECHO = "echo";

    /** FP32 of two dimensions. */
    static final String GRID = "grid";

    /** BYTES of one dimension. */
    static final String WORDS = "words";

    /** As echo, four seconds later. */
    static final String SLOW = "slow";

    /** As echo, 20 milliseconds later. */
    static final String PAUSING = "pausing";

    /** Decoupled: returns n in n responses. */
    static final String SQUARE = "square";

    private Models() {}

    /** Writes all of them into a directory. */
    static void write(Path directory) {
        new Repository(directory)
                .model(ECHO, Repository.identity(0, "FP32", "[ -1 ]", ""))
                .model(GRID, Repository.identity(0, "FP32", "[ -1, -1 ]", ""))
                .model(WORDS, Repository.identity(0, "STRING", "[ -1 ]", ""))
                .model(SLOW, Repository.identity(0, "FP32", "[ -1 ]", delay(4_000)))
                .model(PAUSING, Repository.identity(64, "FP32", "[ -1 ]", "dynamic_batching { }\n" + delay(20)))
                .copyOf(InstalledServer.CHECKOUT
                        .resolve("examples/plugin-models")
                        .resolve(SQUARE));
    }

    private static String delay(int millis) {
        return "parameters [ { key: \"execute_delay_ms\" value: { string_value: \"" + millis + "\" } } ]\n"
                + "instance_group [ { count: 4 kind: KIND_CPU } ]\n";
    }
}
