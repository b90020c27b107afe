package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.backend.tensorflow.graph.Executor;
import dev.nereid.backend.tensorflow.graph.GraphOperators;
import dev.nereid.backend.tensorflow.graph.SessionConfig;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Parameters;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;

/**
 * Parameters of one model, by the reference server's names. Immutable.
 *
 * @param tags the tags of the graph ({@code TF_GRAPH_TAG})
 * @param signature the signature ({@code TF_SIGNATURE_DEF})
 * @param interOp threads of the pool of its session ({@code TF_NUM_INTER_THREADS}); 0 if it may have none
 * @param instancesPerSession how many instances share a session ({@code MAX_SESSION_SHARE_COUNT})
 * @param initOpsFile the file with the operations to run after the load ({@code TF_INIT_OPS_FILE})
 * @param gpus whether instances run on GPUs
 */
record TensorFlowModelOptions(
        Set<String> tags,
        Optional<String> signature,
        int interOp,
        int instancesPerSession,
        Optional<String> initOpsFile,
        boolean gpus) {
    static final String INTRA_OP = "TF_NUM_INTRA_THREADS";
    static final String INTER_OP = "TF_NUM_INTER_THREADS";
    private static final String OWN_THREADS = "TF_USE_PER_SESSION_THREADS";
    private static final String TAG = "TF_GRAPH_TAG";
    private static final String SIGNATURE = "TF_SIGNATURE_DEF";
    private static final String SHARE_COUNT = "MAX_SESSION_SHARE_COUNT";
    private static final String INIT_OPS = "TF_INIT_OPS_FILE";
    private static final String DEFAULT_TAG = "serve";

    TensorFlowModelOptions {
        tags = Set.copyOf(tags);
    }

    static TensorFlowModelOptions of(ModelContext context, TensorFlowBackendOptions backend) {
        Parameters parameters = context.parameters();
        OptionValues values = new OptionValues(parameters);
        warnOfIntraOp(context, backend, values);
        return new TensorFlowModelOptions(
                Set.copyOf(List.of(parameters
                        .text(TAG)
                        .filter(tag -> !tag.isBlank())
                        .orElse(DEFAULT_TAG)
                        .strip()
                        .split("\\s*,\\s*"))),
                parameters.text(SIGNATURE).filter(name -> !name.isBlank()),
                interOp(values, backend),
                instancesPerSession(values),
                parameters.text(INIT_OPS).filter(name -> !name.isBlank()),
                context.instances().stream().anyMatch(device -> device.kind() == Device.Kind.GPU));
    }

    private static int interOp(OptionValues values, TensorFlowBackendOptions backend) {
        int threads = values.number(INTER_OP).orElse(0);
        if (threads < 0) {
            throw values.values().invalid(INTER_OP, "a number of threads, or 0");
        }
        boolean own = values.truth(OWN_THREADS).orElse(false);
        return threads == 0 && own ? backend.processors() : threads;
    }

    private static int instancesPerSession(OptionValues values) {
        OptionalInt count = values.number(SHARE_COUNT);
        if (count.isPresent() && count.getAsInt() < 1) {
            throw values.values().invalid(SHARE_COUNT, "the number of instances that share a session, at least 1");
        }
        return count.orElse(Integer.MAX_VALUE);
    }

    /** The first session of the process fixes the number of these threads for all. */
    private static void warnOfIntraOp(ModelContext context, TensorFlowBackendOptions backend, OptionValues values) {
        OptionalInt wanted = values.number(INTRA_OP);
        if (wanted.isEmpty() || context.instances().isEmpty()) { // during the completion there are no instances
            return;
        }
        if (wanted.getAsInt() != 0 && wanted.getAsInt() != backend.intraOp()) {
            context.logger()
                    .log(
                            System.Logger.Level.WARNING,
                            "parameter " + INTRA_OP + ": " + wanted.getAsInt() + " has no effect: TensorFlow has "
                                    + backend.intraOp() + " such threads for all models of the process (set them by"
                                    + " --backend-config=tensorflow," + INTRA_OP + "=…)");
        }
    }

    SessionConfig session(GraphOperators operators, TensorFlowBackendOptions backend) {
        return new SessionConfig(executor(operators), backend.intraOp(), interOp, gpus, backend.softPlacement());
    }

    private Executor executor(GraphOperators operators) {
        if (interOp > 1 || gpus || operators.needsThreads()) {
            return Executor.THREAD_POOL;
        }
        return operators.needsFullExecutor() ? Executor.CALLING_THREAD : Executor.SINGLE_THREADED;
    }
}
