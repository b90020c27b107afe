package dev.nereid.backend.onnx;

import java.util.List;

/** Names of the parameters that the configuration of a model may have. */
final class OnnxParameters {
    static final String INTRA_OP = "intra_op_thread_count";
    static final String INTER_OP = "inter_op_thread_count";
    static final String EXECUTION_MODE = "execution_mode";
    static final String ARENA = "enable_mem_arena";
    static final String PATTERN = "enable_mem_pattern";
    static final String SHRINKAGE = "memory.enable_memory_arena_shrinkage";

    /** Options of CUDA, which the reference server reads here too; an accelerator {@code cuda} is the newer way. */
    static final String CONV_ALGO_SEARCH = "cudnn_conv_algo_search";

    static final String GPU_MEM_LIMIT = "gpu_mem_limit";
    static final String ARENA_EXTEND_STRATEGY = "arena_extend_strategy";
    static final String COPY_IN_DEFAULT_STREAM = "do_copy_in_default_stream";
    static final List<String> OF_CUDA =
            List.of(CONV_ALGO_SEARCH, GPU_MEM_LIMIT, ARENA_EXTEND_STRATEGY, COPY_IN_DEFAULT_STREAM);

    /** Options of a session with this prefix are ONNX Runtime's own, and passed on unread. */
    static final String SESSION_PREFIX = "session.";

    private OnnxParameters() {}
}
