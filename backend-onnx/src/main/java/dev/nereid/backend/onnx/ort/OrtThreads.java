package dev.nereid.backend.onnx.ort;

/**
 * The sizes of ONNX Runtime's two thread pools. Immutable.
 *
 * @param intraOp threads that share the work of one operator, the calling one among them; 0 = one per physical core
 * @param interOp threads that run operators at the same time, used by parallel execution only; 0 = one per physical
 *     core
 * @param spin whether idle threads of a pool shared by all sessions spin for a while before they sleep
 */
public record OrtThreads(int intraOp, int interOp, boolean spin) {
    public OrtThreads {
        if (intraOp < 0) {
            throw new IllegalArgumentException("intra_op_thread_count: " + intraOp + " (expected: >= 0)");
        }
        if (interOp < 0) {
            throw new IllegalArgumentException("inter_op_thread_count: " + interOp + " (expected: >= 0)");
        }
    }

    public String text() {
        return "intra-op threads " + intraOp + ", inter-op threads " + interOp;
    }
}
