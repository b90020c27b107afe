package dev.nereid.backend.tensorflow.graph;

import org.tensorflow.proto.ConfigProto;

/**
 * Options of a session. Immutable.
 *
 * @param executor how its runs use threads
 * @param intraOp threads for one operation, which the first session of the process fixes; 0 for all processors
 * @param interOp the threads of the session's own pool; 0 for the pool of the process
 * @param gpus whether it may use GPUs
 * @param softPlacement whether operations without a kernel for GPUs run on the CPU
 */
public record SessionConfig(Executor executor, int intraOp, int interOp, boolean gpus, boolean softPlacement) {
    private static final String SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR";

    /** Returns the same options with another executor. */
    public SessionConfig with(Executor changed) {
        return new SessionConfig(changed, intraOp, interOp, gpus, softPlacement);
    }

    public byte[] serialized() {
        ConfigProto.Builder config =
                ConfigProto.newBuilder().setIntraOpParallelismThreads(intraOp).setAllowSoftPlacement(softPlacement);
        switch (executor) {
            case SINGLE_THREADED -> {
                config.setInterOpParallelismThreads(-1);
                config.getExperimentalBuilder().setExecutorType(SINGLE_THREADED);
            }
            case CALLING_THREAD -> config.setInterOpParallelismThreads(-1);
            case THREAD_POOL -> config.setInterOpParallelismThreads(interOp).setUsePerSessionThreads(interOp > 0);
        }
        if (gpus) {
            config.getGpuOptionsBuilder().setAllowGrowth(true);
        } else {
            config.putDeviceCount("GPU", 0);
        }
        return config.build().toByteArray();
    }
}
