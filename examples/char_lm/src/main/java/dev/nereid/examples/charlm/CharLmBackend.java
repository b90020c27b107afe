package dev.nereid.examples.charlm;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Loads language models whose weights are in {@code weights.bin} of the version. Immutable. */
final class CharLmBackend implements Backend {
    static final String INPUT = "text_input";
    static final String OUTPUT = "text_output";
    static final String STATE_IN = "state_in";
    static final String STATE_OUT = "state_out";

    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.LONG).withParallelInstances();

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        check(context.settings());
        Path file = context.versionDirectory().resolve("weights.bin");
        CharNetwork network;
        try {
            network = CharNetwork.of(Files.readAllBytes(file));
        } catch (IOException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "weights '" + file + "' cannot be read", e);
        }
        return _ -> new CharLmInstance(network);
    }

    private static void check(ModelSettings settings) {
        boolean iterative = settings.sequenceBatching()
                .filter(SequenceBatching::iterative)
                .flatMap(batching -> batching.state(STATE_OUT))
                .filter(CharLmBackend::isState)
                .isPresent();
        if (!iterative || !settings.decoupled() || !settings.batches()) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model '" + settings.name()
                            + "': (expected: max_batch_size > 0, decoupled: true, and sequence_batching"
                            + " with iterative_sequence: true and a state from '" + STATE_IN + "' to '" + STATE_OUT
                            + "', TYPE_FP32, dims [ " + CharLmInstance.STATE + " ])");
        }
    }

    private static boolean isState(StateSpec state) {
        return state.inputName().equals(STATE_IN) && state.type() == DataType.FP32;
    }
}
