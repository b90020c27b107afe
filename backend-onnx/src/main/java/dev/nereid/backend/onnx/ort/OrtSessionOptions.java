package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Options of a session. Immutable.
 *
 * @param threads the session's own thread pools
 * @param sharesThreads whether the session computes with the pools of the library instead, if it has any
 * @param execution how the graph is rewritten and run
 * @param memory how working memory is managed
 * @param config session config entries by ONNX Runtime's own keys, such as {@code session.intra_op.allow_spinning}
 * @param customOps libraries with further operators
 * @param logging the level of the session's log
 */
public record OrtSessionOptions(
        OrtThreads threads,
        boolean sharesThreads,
        Execution execution,
        Memory memory,
        Map<String, String> config,
        List<Path> customOps,
        Logging logging) {

    /** ONNX Runtime's own defaults. */
    static final OrtSessionOptions DEFAULTS = new OrtSessionOptions(
            new OrtThreads(0, 0, true),
            false,
            new Execution(false, GraphLevel.ALL),
            new Memory(true, true),
            Map.of(),
            List.of(),
            new Logging("session", OrtLog.Severity.WARNING, (severity, location, message) -> {}));

    /** Graph optimization levels, with their numbers in the header. */
    public enum GraphLevel {
        DISABLED(0),
        BASIC(1),
        EXTENDED(2),
        ALL(99);

        private final int number;

        GraphLevel(int number) {
            this.number = number;
        }
    }

    /**
     * Graph optimization and execution mode.
     *
     * @param parallel whether operators that do not depend on each other run at the same time
     * @param level how far the graph is rewritten at load
     */
    public record Execution(boolean parallel, GraphLevel level) {}

    /**
     * Memory management of a session.
     *
     * @param arena whether memory is kept between runs rather than returned to the system
     * @param pattern whether the sizes of the first run with some shapes are allocated at once in later ones
     */
    public record Memory(boolean arena, boolean pattern) {}

    /**
     * Log settings of a session.
     *
     * @param id names the session in ONNX Runtime's messages
     * @param threshold the minimum severity of written messages
     * @param log takes them
     */
    public record Logging(String id, OrtLog.Severity threshold, OrtLog log) {}

    public OrtSessionOptions {
        config = Map.copyOf(config);
        customOps = List.copyOf(customOps);
    }

    /** Returns the same options for a session that computes with the pools of the library. */
    public OrtSessionOptions withSharedThreads() {
        return new OrtSessionOptions(threads, true, execution, memory, config, customOps, logging);
    }

    /** Creates ONNX Runtime's options, which the caller releases. The session's arena holds the function of its log. */
    long create(OrtLibrary library, Arena session) throws OrtException {
        OrtApi api = library.api();
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(JAVA_LONG);
            api.call(OrtFunction.CreateSessionOptions, out.address());
            long options = out.get(JAVA_LONG, 0);
            try {
                setThreads(library, options);
                setExecution(api, options);
                setConfig(library, options, scratch);
                setLogging(api, options, scratch, session);
                return options;
            } catch (OrtException | RuntimeException e) {
                api.release(OrtFunction.ReleaseSessionOptions, options);
                throw e;
            }
        }
    }

    private void setThreads(OrtLibrary library, long options) throws OrtException {
        if (sharesThreads && library.hasThreadPools()) {
            library.api().call(OrtFunction.DisablePerSessionThreads, options);
            return;
        }
        library.api().call(OrtFunction.SetIntraOpNumThreads, options, threads.intraOp());
        library.api().call(OrtFunction.SetInterOpNumThreads, options, threads.interOp());
    }

    private void setExecution(OrtApi api, long options) throws OrtException {
        api.call(OrtFunction.SetSessionExecutionMode, options, execution.parallel() ? 1 : 0);
        api.call(OrtFunction.SetSessionGraphOptimizationLevel, options, execution.level().number);
        api.call(memory.arena() ? OrtFunction.EnableCpuMemArena : OrtFunction.DisableCpuMemArena, options);
        api.call(memory.pattern() ? OrtFunction.EnableMemPattern : OrtFunction.DisableMemPattern, options);
    }

    private void setConfig(OrtLibrary library, long options, Arena scratch) throws OrtException {
        for (Map.Entry<String, String> entry : config.entrySet()) {
            long key = CStrings.write(scratch, entry.getKey());
            long value = CStrings.write(scratch, entry.getValue());
            library.api().call(OrtFunction.AddSessionConfigEntry, options, key, value);
        }
        for (Path customOp : customOps) {
            long path = library.platform().writePath(scratch, customOp);
            library.api().call(OrtFunction.RegisterCustomOpsLibrary_V2, options, path);
        }
    }

    private void setLogging(OrtApi api, long options, Arena scratch, Arena session) throws OrtException {
        long callback = OrtLogCallback.create(logging.log(), session);
        api.call(OrtFunction.SetUserLoggingFunction, options, callback, 0);
        api.call(OrtFunction.SetSessionLogId, options, CStrings.write(scratch, logging.id()));
        api.call(
                OrtFunction.SetSessionLogSeverityLevel,
                options,
                logging.threshold().number());
    }
}
