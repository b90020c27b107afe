package dev.nereid.backend.tensorflow;

import dev.nereid.backend.tensorflow.capi.TfDataType;
import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfExecution;
import dev.nereid.backend.tensorflow.capi.TfSession;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.spi.DataType;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Runs a session once with zeros while its model is loaded. Stateless.
 *
 * <p>With its first run a session optimizes the graph and prepares the operations, which takes milliseconds. A model
 * with executions that are declared short may run on the event loop of a client, where this work must not happen.
 */
final class Priming {
    private static final long MAX_BYTES = 1 << 20;
    private static final long ALIGNMENT = 64;

    private Priming() {}

    /** Runs a session for all outputs of a model. A run that fails has prepared the session as well. */
    static void run(TfSession session, GraphModel model, TensorFlowSignature signature, System.Logger logger) {
        try (Arena arena = Arena.ofConfined();
                TfExecution execution = session.newExecution(signature.fed(), signature.fetched())) {
            execution.begin();
            try {
                boolean isFed = true;
                for (int i = 0; i < model.inputs().size(); i++) {
                    isFed &= feed(execution, i, model.inputs().get(i), arena);
                }
                if (isFed) {
                    signature.outputs().forEach(output -> execution.output(output.index()));
                    signature.states().forEach(state -> execution.output(state.index()));
                    execution.run();
                }
            } finally {
                execution.end();
            }
        } catch (TfException e) {
            logger.log(System.Logger.Level.DEBUG, "run with zeros failed: " + e.getMessage());
        }
    }

    /** Feeds zeros with 1 in place of each open dimension; returns false where that would be very many. */
    private static boolean feed(TfExecution execution, int index, GraphTensor tensor, Arena arena) {
        long[] shape = tensor.shape().orElse(new long[] {1}).clone();
        Arrays.setAll(shape, i -> Math.max(shape[i], shape[i] < 0 ? 1 : 0));
        Optional<DataType> type = TensorFlowTensors.dataType(tensor.type());
        OptionalLong bytes = byteSize(type, tensor.type(), shape);
        if (bytes.isEmpty()) {
            return false;
        }
        execution.input(
                index, arena.allocate(Math.max(1, bytes.getAsLong()), ALIGNMENT).asSlice(0, bytes.getAsLong()), shape);
        return true;
    }

    private static OptionalLong byteSize(Optional<DataType> type, TfDataType tensorFlow, long[] shape) {
        long elementBytes = tensorFlow == TfDataType.STRING
                ? Integer.BYTES // the length of an empty text
                : type.map(DataType::byteSize).orElse(0);
        long bytes = elementBytes;
        for (long dim : shape) {
            if (dim > MAX_BYTES) {
                return OptionalLong.empty();
            }
            bytes *= dim;
            if (bytes > MAX_BYTES) {
                return OptionalLong.empty();
            }
        }
        return elementBytes == 0 ? OptionalLong.empty() : OptionalLong.of(bytes);
    }
}
