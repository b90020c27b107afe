package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.backend.onnx.ort.OrtSessionOptions;
import dev.nereid.backend.onnx.ort.OrtThreads;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Session and run options of one model. Immutable.
 *
 * <p>Threads: a session's pool serves all instances of its model, and each instance's own thread computes with it. So
 * that n busy instances occupy exactly all processors, the pool is sized for {@code processors - n + 1} threads, the
 * instance's own among them; with as many instances as processors there is no pool at all, and each instance computes
 * alone. The number of these threads is bounded: see {@link PoolThreads}. Instances on GPUs do not count.
 *
 * @param session the options of the session on the CPU
 * @param run the run config entries of executions on all devices
 * @param threads describes the threads of the session, for the log
 */
record OnnxModelOptions(OrtSessionOptions session, Map<String, String> run, String threads) {
    /** Threads of the pool that all sessions share do not spin between runs. */
    static final boolean SHARED_POOL_SPINS = false;

    /**
     * The default wait of a session's idle threads. For the next operator of a run they spin, for a tenth of a
     * millisecond at most, and with the end of the run they sleep. A graph has dozens of operators, and waking a
     * sleeping thread for each costs more than many of them; a thread that spins longer, as by ONNX Runtime's own
     * default, keeps the processor from the threads that read requests and write responses. Measured with SqueezeNet
     * and two threads on two processors, medians of a run: asleep 4.7 ms, spinning like this 4.1 ms; with two other
     * busy processes 6.1 to 8.0 ms asleep, 7.5 to 7.8 ms like this, and 8.9 to 9.2 ms if the spinning is not bounded.
     */
    private static final Map<String, String> WAITING = Map.of(
            "session.intra_op.allow_spinning", "1",
            "session.intra_op.spin_duration_us", "100",
            "session.inter_op.allow_spinning", "0",
            "session.force_spinning_stop", "1");

    /** Leads ONNX Runtime to files of the repository, which change while it maps them. */
    private static final String EXTERNAL_DATA_DIRECTORY = "session.model_external_initializers_file_folder_path";

    private static final String DEVICE_ALLOCATOR = "session.use_device_allocator_for_initializers";

    /** Reads the options, and refuses options that cannot be satisfied. */
    static OnnxModelOptions of(ModelContext context, OnnxBackendOptions backend) {
        ModelSettings settings = context.settings();
        OptionValues values = new OptionValues(context.parameters());
        OnnxAccelerators.check(context);
        report(context);
        boolean parallel = isParallel(values);
        boolean arena = values.truth(OnnxParameters.ARENA).orElse(true);
        OrtSessionOptions session = new OrtSessionOptions(
                threads(values, backend, OnnxAccelerators.cpuInstances(context)),
                backend.globalThreadPool(),
                new OrtSessionOptions.Execution(parallel, graphLevel(settings)),
                new OrtSessionOptions.Memory(
                        arena, values.truth(OnnxParameters.PATTERN).orElse(true)),
                sessionConfig(values),
                OperatorLibraries.of(context),
                OnnxLog.of(context));
        return new OnnxModelOptions(
                session,
                ArenaShrinkage.read(values, arena, context.instances()),
                session.sharesThreads()
                        ? "threads shared by all models"
                        : session.threads().text());
    }

    OnnxModelOptions {
        run = Map.copyOf(run);
    }

    /** Returns the options of a session that only reads inputs and outputs. They are the fastest to open. */
    OrtSessionOptions forReadingTheSignature() {
        Map<String, String> config = new HashMap<>(session.config());
        config.put("session.disable_prepacking", "1");
        return new OrtSessionOptions(
                new OrtThreads(1, 1, false),
                session.sharesThreads(),
                new OrtSessionOptions.Execution(false, OrtSessionOptions.GraphLevel.DISABLED),
                session.memory(),
                config,
                session.customOps(),
                session.logging());
    }

    /** Returns the same options for a session that computes with the pool that models share. */
    OnnxModelOptions withSharedThreads() {
        return new OnnxModelOptions(session.withSharedThreads(), run, "threads shared with other models");
    }

    /**
     * Returns the options of the session on a device. That of a GPU computes with the pool that models share, unless the
     * configuration says otherwise: what runs on processors is the part of a graph that the GPU cannot compute.
     */
    OrtSessionOptions sessionOn(Device device, Parameters parameters) {
        return device.kind() == Device.Kind.GPU && mayShareThreads(parameters) ? session.withSharedThreads() : session;
    }

    /** Returns the run config entries of executions on a device. */
    Map<String, String> runOn(Device device) {
        return ArenaShrinkage.on(device, run);
    }

    /** Returns the size of the mapped libraries of operators. */
    long libraryBytes() {
        return OperatorLibraries.byteSize(session.customOps());
    }

    /** Returns whether the configuration leaves it open which threads a session computes with. */
    boolean mayShareThreads(Parameters parameters) {
        return !session.execution().parallel()
                && parameters.value(OnnxParameters.INTRA_OP).isEmpty();
    }

    /** Returns the number of threads in the session's own pools. The threads that run the model are not in them. */
    int poolThreads() {
        OrtThreads pools = session.threads();
        int interOp = session.execution().parallel() ? pools.interOp() : 1;
        return Math.max(0, pools.intraOp() - 1) + Math.max(0, interOp - 1);
    }

    /** Returns whether sessions for other instances, with the same backend options, would use the same threads. */
    boolean suits(Parameters parameters, OnnxBackendOptions backend, List<Device> instances) {
        if (session.sharesThreads()) {
            return true;
        }
        OptionValues values = new OptionValues(parameters);
        OrtThreads others = threads(values, backend, OnnxAccelerators.cpuInstances(instances));
        OrtThreads own = session.threads();
        return others.intraOp() == own.intraOp()
                && (!session.execution().parallel() || others.interOp() == own.interOp());
    }

    private static OrtThreads threads(OptionValues values, OnnxBackendOptions backend, int instances) {
        int sized = Math.max(1, backend.processors() - Math.max(1, instances) + 1);
        int intraOp = values.number(OnnxParameters.INTRA_OP).orElse(0);
        int interOp = values.number(OnnxParameters.INTER_OP).orElse(0);
        return new OrtThreads(
                first(intraOp, backend.intraOp(), sized), first(interOp, backend.interOp(), sized), SHARED_POOL_SPINS);
    }

    /** The first number that is not 0. */
    private static int first(int configured, int common, int sized) {
        if (configured > 0) {
            return configured;
        }
        return common > 0 ? common : sized;
    }

    private static boolean isParallel(OptionValues values) {
        int mode = values.number(OnnxParameters.EXECUTION_MODE).orElse(0);
        if (mode != 0 && mode != 1) {
            throw values.refused(
                    "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got "
                            + mode + " .",
                    OnnxParameters.EXECUTION_MODE,
                    "0 for one operator after another, or 1 for several at a time");
        }
        return mode == 1;
    }

    /** As on the reference server, any other level means all optimizations. */
    private static OrtSessionOptions.GraphLevel graphLevel(ModelSettings settings) {
        return switch (settings.value("optimization.graph.level").orElse("0")) {
            case "-1" -> OrtSessionOptions.GraphLevel.BASIC;
            case "1" -> OrtSessionOptions.GraphLevel.EXTENDED;
            case "2" -> OrtSessionOptions.GraphLevel.DISABLED;
            default -> OrtSessionOptions.GraphLevel.ALL;
        };
    }

    private static Map<String, String> sessionConfig(OptionValues values) {
        Parameters session = values.values().under(OnnxParameters.SESSION_PREFIX);
        if (session.value(EXTERNAL_DATA_DIRECTORY).isPresent()) {
            throw session.invalid(
                    EXTERNAL_DATA_DIRECTORY,
                    "external data beside the model's file: ONNX Runtime maps it, and is given private copies");
        }
        Map<String, String> config = new HashMap<>(WAITING);
        session.asMap().forEach((key, value) -> config.put(key, value.toString()));
        return config;
    }

    /** Reports options in texts that scripts search for. */
    private static void report(ModelContext context) {
        Parameters parameters = context.parameters();
        for (String name : List.of(OnnxParameters.ARENA, OnnxParameters.PATTERN, OnnxParameters.SHRINKAGE)) {
            parameters
                    .text(name)
                    .ifPresent(value -> logAtLoad(
                            context, System.Logger.Level.DEBUG, () -> "Configuring " + name + " to " + value));
        }
        parameters
                .text(DEVICE_ALLOCATOR)
                .ifPresent(value -> logAtLoad(
                        context,
                        System.Logger.Level.DEBUG,
                        () -> "Configuring '" + DEVICE_ALLOCATOR + "' to '" + value + "' for '"
                                + context.settings().name() + "'"));
    }

    /** Logs a text, but not while the configuration is completed. There are no instances yet at that time. */
    static void logAtLoad(ModelContext context, System.Logger.Level level, Supplier<String> text) {
        if (!context.instances().isEmpty()) {
            context.logger().log(level, text);
        }
    }
}
