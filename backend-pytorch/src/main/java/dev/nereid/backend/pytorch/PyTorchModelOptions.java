package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.backend.pytorch.presets.ExecutionMode;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Parameters;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The parameters of a model. Immutable.
 *
 * <p>Threads: each instance has a separate team for parallel work. So that n busy instances occupy exactly all
 * processors, each team has an n-th of them, and at least one thread.
 *
 * @param mode how the module is loaded and executed
 * @param sharesWeights whether instances share a module that they change
 * @param profiling the setting for the process, if given
 * @param executor the setting for the process, if given
 * @param intraOpThreads the number of threads that one execution computes with
 * @param interOpThreads the number of threads for tasks that scripts fork, for the process, if given
 */
record PyTorchModelOptions(
        ExecutionMode mode,
        boolean sharesWeights,
        Optional<Boolean> profiling,
        Optional<Boolean> executor,
        int intraOpThreads,
        OptionalInt interOpThreads) {
    private static final String DISABLE_OPTIMIZED_EXECUTION = "DISABLE_OPTIMIZED_EXECUTION";
    private static final String INFERENCE_MODE = "INFERENCE_MODE";
    private static final String DISABLE_CUDNN = "DISABLE_CUDNN";
    private static final String ENABLE_JIT_PROFILING = "ENABLE_JIT_PROFILING";
    private static final String ENABLE_JIT_EXECUTOR = "ENABLE_JIT_EXECUTOR";
    private static final String ENABLE_TENSOR_FUSER = "ENABLE_TENSOR_FUSER";
    private static final String ENABLE_NVFUSER = "ENABLE_NVFUSER";
    private static final String ENABLE_WEIGHT_SHARING = "ENABLE_WEIGHT_SHARING";
    private static final String ENABLE_CACHE_CLEANING = "ENABLE_CACHE_CLEANING";
    private static final String INTRA_OP_THREAD_COUNT = "INTRA_OP_THREAD_COUNT";
    private static final String INTER_OP_THREAD_COUNT = "INTER_OP_THREAD_COUNT";
    private static final int MAX_THREADS = 1024;

    static PyTorchModelOptions of(ModelContext context, int processors) {
        return of(context.parameters(), context.instances(), processors);
    }

    private static PyTorchModelOptions of(Parameters parameters, List<Device> instances, int processors) {
        OptionValues values = new OptionValues(parameters);
        boolean optimized = !values.truth(DISABLE_OPTIMIZED_EXECUTION).orElse(false);
        values.truth(ENABLE_CACHE_CLEANING);
        boolean inference = values.truth(INFERENCE_MODE).orElse(true);
        values.truth(DISABLE_CUDNN);
        values.truth(ENABLE_TENSOR_FUSER);
        return new PyTorchModelOptions(
                new ExecutionMode(inference, optimized),
                values.truth(ENABLE_WEIGHT_SHARING).orElse(false),
                values.truth(ENABLE_JIT_PROFILING),
                values.truth(ENABLE_JIT_EXECUTOR),
                threads(values, INTRA_OP_THREAD_COUNT).orElse(Math.max(1, processors / Math.max(1, instances.size()))),
                threads(values, INTER_OP_THREAD_COUNT));
    }

    private static OptionalInt threads(OptionValues values, String name) {
        OptionalInt configured = values.number(name);
        if (configured.isPresent() && configured.getAsInt() > MAX_THREADS) {
            throw values.refused(configured.getAsInt() + " threads", name, "at most " + MAX_THREADS);
        }
        return configured.isPresent() && configured.getAsInt() > 0 ? configured : OptionalInt.empty();
    }

    /** Says whether as many threads are for each of other instances. */
    boolean suits(Parameters parameters, List<Device> others, int processors) {
        return of(parameters, others, processors).intraOpThreads == intraOpThreads;
    }

    /** Logs the effect of each parameter, in the words of the reference server, and which have none on the CPU. */
    void report(ModelContext context) {
        OptionValues values = new OptionValues(context.parameters());
        log(context, "Optimized execution", mode.optimized(), "");
        log(
                context,
                "Cache Cleaning",
                values.truth(ENABLE_CACHE_CLEANING).orElse(false),
                noEffect(values, ENABLE_CACHE_CLEANING));
        log(context, "Inference Mode", mode.inference(), "");
        log(context, "cuDNN", !values.truth(DISABLE_CUDNN).orElse(false), noEffect(values, DISABLE_CUDNN));
        values.truth(ENABLE_TENSOR_FUSER)
                .ifPresent(on -> log(context, "Tensor fuser", on, noEffect(values, ENABLE_TENSOR_FUSER)));
        values.truth(ENABLE_WEIGHT_SHARING).ifPresent(on -> log(context, "Weight sharing", on, ""));
        profiling.ifPresent(on -> log(context, "Jit profiling", on, ""));
        executor.ifPresent(on -> log(context, "Jit executor", on, ""));
        for (String name : List.of(INTRA_OP_THREAD_COUNT, INTER_OP_THREAD_COUNT)) {
            if (values.number(name).orElse(1) <= 0) {
                log(context, name + " has no effect (expected: a number above 0)");
            }
        }
        if (values.values().text(ENABLE_NVFUSER).isPresent()) {
            log(context, ENABLE_NVFUSER + " has no effect: PyTorch has no such fuser any more");
        }
        threads(values, INTRA_OP_THREAD_COUNT)
                .ifPresent(threads -> log(context, "Intra op thread count is set to " + threads));
        interOpThreads.ifPresent(threads -> log(context, "Inter op thread count is set to " + threads));
    }

    private static String noEffect(OptionValues values, String name) {
        return values.values().text(name).isPresent() ? " (" + name + " has no effect on the CPU)" : "";
    }

    private static void log(ModelContext context, String what, boolean enabled, String remark) {
        log(context, what + " is " + (enabled ? "enabled" : "disabled"), remark);
    }

    private static void log(ModelContext context, String text) {
        log(context, text, "");
    }

    private static void log(ModelContext context, String text, String remark) {
        context.logger()
                .log(
                        System.Logger.Level.INFO,
                        text + " for model instance '" + context.settings().name() + "'" + remark);
    }
}
