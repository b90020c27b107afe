package dev.nereid.cuda;

/**
 * The calls of the CUDA driver in use. Safe for use by any thread.
 *
 * <p>Pointers, contexts, streams and events are numbers and belong to the caller, who frees each once and after its
 * last use: the driver follows a number that is stale, and a destroyed event ends the process. Sizes are in bytes.
 *
 * <p>Every method but {@link #version} throws {@link CudaException} if the call fails; after {@link #init} alone is any
 * other allowed. Those that say so need a current context, which belongs to the platform thread: virtual threads lose
 * it when they change their carrier.
 */
interface CudaDriver {
    /** {@link #attribute}: the major part of the compute capability. */
    int COMPUTE_CAPABILITY_MAJOR = 75;
    /** {@link #attribute}: the minor part of the compute capability. */
    int COMPUTE_CAPABILITY_MINOR = 76;

    /** Returns the newest version of CUDA that the driver supports, as 1000 × major + 10 × minor. */
    int version();

    /** Initializes the driver for the process. Takes up to some 200 ms. */
    void init();

    /** Returns the number of GPUs. */
    int deviceCount();

    /** Returns the device with an ordinal from 0 to {@link #deviceCount} - 1. */
    int device(int ordinal);

    /** Returns the name of a device, such as {@code NVIDIA H100 80GB HBM3}. */
    String name(int device);

    /** Returns the UUID of a device as NVML writes it: {@code GPU-} and five groups of hexadecimal digits. */
    String uuid(int device);

    /** Returns an attribute of a device, a {@code CUdevice_attribute}. */
    int attribute(int attribute, int device);

    /** Returns the size of a device's memory. */
    long totalMemory(int device);

    /** Returns the primary context of a device, made if need be, which stays until the process ends. */
    long retainPrimaryContext(int device);

    /** Makes a context the current one of this platform thread. */
    void setCurrent(long context);

    /** Allocates device memory of the current context, more than 0 bytes. */
    long allocate(long byteSize);

    /** Frees device memory. Waits for running kernels, and makes other threads wait meanwhile. */
    void free(long address);

    /** Allocates pinned memory of the host in the current context, usable with any. About 0.4 ms for each MiB. */
    long allocateHost(long byteSize);

    /** Frees pinned memory of the host. Waits as {@link #free} does. */
    void freeHost(long address);

    /** Appends a copy from the host. From pinned memory it is read when the stream gets there. */
    void copyFromHost(long host, long device, long byteSize, long stream);

    /** Appends a copy to the host. To pinned memory it is written when the stream gets there. */
    void copyToHost(long device, long host, long byteSize, long stream);

    /** Appends a copy within the device. */
    void copy(long from, long to, long byteSize, long stream);

    /** Appends the filling of device memory with a byte. */
    void fill(long address, byte value, long byteSize, long stream);

    /** Creates a stream in the current context that is independent of the default stream. */
    long createStream();

    /** Destroys a stream. Does not wait for its work. */
    void destroyStream(long stream);

    /** Makes later work of a stream wait for an event. */
    void waitFor(long stream, long event);

    /** Creates an event without timing in the current context. Until it is recorded it counts as done. */
    long createEvent();

    /** Destroys an event, which no thread may use during the call or after it. */
    void destroyEvent(long event);

    /** Appends an event to a stream: it is done when all earlier work of the stream is. */
    void record(long event, long stream);

    /** Returns whether an event is done. Never blocks; throws if the device failed. */
    boolean isDone(long event);
}
