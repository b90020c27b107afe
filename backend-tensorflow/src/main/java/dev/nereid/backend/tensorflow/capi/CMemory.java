package dev.nereid.backend.tensorflow.capi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Functions of the C library that tensors and graphs are made with. Stateless.
 *
 * <p>A tensor that lies in memory of the server gets a deallocator that does nothing: {@code abs}, which reads its first
 * argument alone. A tensor with a copy of a request's input lies in memory of {@code malloc}, and its deallocator is
 * {@code free}: TensorFlow then frees it with the last use, on any of its threads, without a call into Java.
 */
public final class CMemory {
    /** The alignment in bytes that TensorFlow uses memory in place with. */
    static final int ALIGNMENT = 64;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final long NO_DEALLOCATION = symbol("abs").address();
    private static final long FREE = symbol("free").address();
    private static final MethodHandle ALLOCATE =
            handle("aligned_alloc", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle RELEASE = handle("free", FunctionDescriptor.ofVoid(JAVA_LONG));

    private CMemory() {}

    /** Returns the address of a deallocator that does nothing. */
    static long noDeallocation() {
        return NO_DEALLOCATION;
    }

    /** Returns the address of the deallocator of {@link #allocate(long)}. */
    static long freeing() {
        return FREE;
    }

    /** Returns aligned memory, which {@link #freeing} frees; throws {@link OutOfMemoryError} if there is none. */
    @SuppressWarnings("restricted")
    static MemorySegment allocate(long byteSize) {
        long rounded = Math.max(ALIGNMENT, Math.addExact(byteSize, ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        long address;
        try {
            address = (long) ALLOCATE.invokeExact((long) ALIGNMENT, rounded);
        } catch (Throwable e) {
            throw new IllegalStateException("aligned_alloc failed", e);
        }
        if (address == 0) {
            throw new OutOfMemoryError("native memory: " + byteSize + " bytes for an input (expected: available)");
        }
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }

    /**
     * Returns aligned memory that is freed with {@code arena}. Unlike the arena's own it is not filled with zeros, and
     * the JVM's limit of direct memory does not count it.
     *
     * @throws OutOfMemoryError if there is none
     */
    @SuppressWarnings("restricted")
    public static MemorySegment allocate(long byteSize, Arena arena) {
        return allocate(byteSize).reinterpret(arena, CMemory::free);
    }

    /** Frees memory of {@link #allocate(long)} that no tensor got. */
    static void free(MemorySegment memory) {
        try {
            RELEASE.invokeExact(memory.address());
        } catch (Throwable e) {
            throw new IllegalStateException("free failed", e);
        }
    }

    /** Sets an environment variable of the process that is not set yet, before a native library reads it. */
    static void setEnvironment(MemorySegment name, MemorySegment value) {
        MethodHandle call = handle("setenv", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
        try {
            int result = (int) call.invokeExact(name, value, 0);
            if (result != 0) {
                throw new IllegalStateException("setenv: " + result + " (expected: 0)");
            }
        } catch (RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("setenv failed", e);
        }
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(String function, FunctionDescriptor descriptor) {
        return LINKER.downcallHandle(symbol(function), descriptor);
    }

    private static MemorySegment symbol(String name) {
        return LINKER.defaultLookup()
                .find(name)
                .orElseThrow(() -> new IllegalStateException(name + ": missing (expected: in the C library)"));
    }
}
