package dev.nereid.cuda;

/**
 * The calls of the CUDA driver in use. Safe for use by any thread.
 *
 * <p>Pointers, contexts, streams and events are numbers and belong to the caller, who frees each once and after its
 * last use: the driver follows a number that is stale, and a destroyed event ends the process. Sizes are in bytes.
 *
 * <p>Every method but {@link #version} throws {@link CudaException} if the call fails; after {@link #init} alone is any
 * other allowed. Methods that say so need a current context, which belongs to the platform thread: virtual threads lose
 * it when they change their carrier.
 */
public interface CudaDriver {
    /** {@link #attribute}: the major part of the compute capability. */
    int COMPUTE_CAPABILITY_MAJOR = 75;
    /** {@link #attribute}: the minor part of the compute capability. */
    int COMPUTE_CAPABILITY_MINOR = 76;
    /** The size of a handle of memory for other processes, in bytes. */
    int IPC_HANDLE_SIZE = 64;

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
    void copy(long source, long target, long byteSize, long stream);

    /**
     * Appends a copy from another device. Without access to its memory the driver copies through the host.
     *
     * @param source an address on the other device
     * @param sourceContext the primary context of the other device
     * @param target an address on the device of the stream
     * @param targetContext its primary context
     * @param byteSize how much to copy
     * @param stream where it is appended
     */
    void copyPeer(long source, long sourceContext, long target, long targetContext, long byteSize, long stream);

    /** Appends the filling of device memory with a byte. */
    void fill(long address, byte value, long byteSize, long stream);

    /** Creates a stream in the current context that is independent of the default stream. */
    long createStream();

    /** Creates such a stream of a priority: 0 is the lowest, less is higher, limited to {@link #greatestPriority}. */
    long createStream(int priority);

    /** Returns the greatest priority of streams in the current context, a number of at most 0: -5 for example. */
    int greatestPriority();

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

    /** Returns the free memory of the current context's device. About 0.1 ms. */
    long freeMemory();

    /**
     * Loads kernels into the current context. Waits for running kernels, and makes other threads wait meanwhile.
     *
     * @param image the address of a text of PTX that ends with a zero byte, or of machine code
     * @throws CudaException with the compiler's message if the text is wrong
     */
    long loadModule(long image);

    /** Unloads kernels. Waits for running ones. */
    void unloadModule(long module);

    long function(long module, String name);

    /**
     * Appends a kernel of one dimension.
     *
     * @param parameters the address of an array with the addresses of the parameters, which are read by the call
     */
    void launch(long function, int blocks, int threads, long stream, long parameters);

    /**
     * Begins to capture what this thread appends to a stream, which is not executed. Other threads are not concerned; on
     * this one, calls that allocate or wait fail meanwhile.
     */
    void beginCapture(long stream);

    /** Ends the capture of a stream. Returns a graph, to be destroyed; 0 if a call spoiled it. */
    long endCapture(long stream);

    /** Makes a graph executable. Returns an executable graph, to be destroyed. */
    long instantiate(long graph);

    void launchGraph(long executable, long stream);

    void destroyGraph(long graph);

    /** Destroys an executable graph, after its last execution. */
    void destroyExecutable(long executable);

    /**
     * Writes the handle with which another process opens device memory.
     *
     * @param address memory of {@link #allocate}, or in it: the handle is that of the whole
     * @param handle the address of {@value #IPC_HANDLE_SIZE} bytes
     */
    void exportMemory(long address, long handle);

    /**
     * Opens the memory of another process in the current context. A handle that somebody changed may end the use of the
     * GPU by this process.
     *
     * @param handle the address of {@value #IPC_HANDLE_SIZE} bytes
     * @return its address here, to be closed as often as it was opened
     */
    long openMemory(long handle);

    /** Closes memory of another process. Waits as {@link #free} does. */
    void closeMemory(long address);

    long allocationSize(long address);

    /** Returns whether a device can read and write the memory of another. */
    boolean canAccessPeer(int device, int peer);

    /** Allows the current context to access the memory of another context; does nothing if it may already. */
    void enablePeerAccess(long peerContext);
}
