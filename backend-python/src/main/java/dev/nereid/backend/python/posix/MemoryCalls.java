package dev.nereid.backend.python.posix;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Makes and maps files that lie in memory and have no name. Stateless; safe for use by any thread.
 *
 * <p>All numbers are the same on x86-64 and aarch64.
 */
public final class MemoryCalls {
    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int MFD_NOEXEC_SEAL = 8;
    private static final int F_ADD_SEALS = 1033;
    private static final int F_SEAL_SEAL = 1;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int PROT_READ_WRITE = 1 | 2;
    private static final int MAP_SHARED = 1;
    private static final int EINVAL = 22;
    private static final long MAP_FAILED = -1;

    private static final MethodHandle MEMFD_CREATE =
            CLibrary.failing("memfd_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    private static final MethodHandle FTRUNCATE =
            CLibrary.failing("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle FCNTL = CLibrary.failing(
            "fcntl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT), Linker.Option.firstVariadicArg(2));
    private static final MethodHandle MMAP = CLibrary.failing(
            "mmap", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle MUNMAP =
            CLibrary.failing("munmap", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CLOSE = CLibrary.failing("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private MemoryCalls() {}

    /**
     * Creates an empty file in memory. Programs that are started do not inherit its descriptor.
     *
     * @param name a name for {@code /proc/self/maps}; at most 249 bytes
     * @return the descriptor, for {@link #close}
     */
    public static int create(String name) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            MemorySegment text = arena.allocateFrom(name);
            int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
            int descriptor = (int) MEMFD_CREATE.invokeExact(state, text, flags | MFD_NOEXEC_SEAL);
            if (descriptor < 0 && CLibrary.errno(state) == EINVAL) {
                // Linux before 6.3 does not have the flag; some later systems are set up to refuse files without it.
                descriptor = (int) MEMFD_CREATE.invokeExact(state, text, flags);
            }
            if (descriptor < 0) {
                throw CLibrary.failure("memfd_create", state);
            }
            return descriptor;
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("memfd_create", e);
        }
    }

    /** Sets the size of a file. Memory is taken when it is first written to. */
    public static void resize(int descriptor, long byteSize) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            if ((int) FTRUNCATE.invokeExact(state, descriptor, byteSize) != 0) {
                throw CLibrary.failure("ftruncate", state);
            }
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("ftruncate", e);
        }
    }

    /** Fixes the size of a file of {@link #create} in memory for all processes and for as long as it exists. */
    public static void seal(int descriptor) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
            if ((int) FCNTL.invokeExact(state, descriptor, F_ADD_SEALS, seals) != 0) {
                throw CLibrary.failure("fcntl", state);
            }
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("fcntl", e);
        }
    }

    /**
     * Maps a file, which may be closed afterwards, for reading and writing.
     *
     * @param byteSize the size in bytes, at most that of the file
     * @return the memory, of the global scope: valid until {@link #unmap}, which no access may follow
     */
    @SuppressWarnings("restricted")
    public static MemorySegment map(int descriptor, long byteSize) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            long address = (long) MMAP.invokeExact(state, 0L, byteSize, PROT_READ_WRITE, MAP_SHARED, descriptor, 0L);
            if (address == MAP_FAILED) {
                throw CLibrary.failure("mmap", state);
            }
            return MemorySegment.ofAddress(address).reinterpret(byteSize);
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("mmap", e);
        }
    }

    /** Unmaps memory, the whole result of {@link #map}, which nothing reads or writes any more. */
    public static void unmap(MemorySegment memory) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            if ((int) MUNMAP.invokeExact(state, memory.address(), memory.byteSize()) != 0) {
                throw CLibrary.failure("munmap", state);
            }
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("munmap", e);
        }
    }

    /** Closes a descriptor. It is closed after an error too. */
    public static void close(int descriptor) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            if ((int) CLOSE.invokeExact(state, descriptor) != 0) {
                throw CLibrary.failure("close", state);
            }
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("close", e);
        }
    }
}
