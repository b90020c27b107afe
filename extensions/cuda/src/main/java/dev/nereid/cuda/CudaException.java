package dev.nereid.cuda;

import java.io.Serial;

/** A call of the CUDA driver that failed. Immutable. */
public final class CudaException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1;

    /** The error of the driver, a {@code CUresult}. */
    private final int number;

    /** Creates the exception of a function call, with the {@code CUresult}, not 0, and the driver's name for it. */
    public CudaException(String function, int number, String name) {
        this(function, number, name, "");
    }

    /** Creates it as {@link #CudaException(String, int, String)}, with what else the driver said; empty for nothing. */
    CudaException(String function, int number, String name, String details) {
        super(function + ": " + number + " " + name + (details.isEmpty() ? "" : ": " + details));
        this.number = number;
    }

    /** Returns the error of the driver, the {@code CUresult}. */
    public int number() {
        return number;
    }

    /**
     * Returns whether every later call of the process on the GPU fails too, so that only a new process can use it:
     * faults of the memory or of a kernel, and a context that is gone.
     */
    public boolean isSticky() {
        return switch (number) {
            case 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719 -> true;
            default -> false;
        };
    }
}
