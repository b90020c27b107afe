package dev.nereid.cuda;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/**
 * A native library, opened by the dynamic linker, which unlike {@link java.lang.foreign.SymbolLookup} gives the reason
 * of a failure. Stays open until the process ends. Immutable; safe for use by any thread.
 */
final class SharedLibrary {
    /** RTLD_NOW: an incompatible library fails here, not at its first call. */
    private static final int RESOLVE_ALL = 2;

    /** The functions of the linker. */
    private static final class Dl {
        private static final MethodHandle OPEN = link("dlopen", ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
        private static final MethodHandle FIND = link("dlsym", ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
        private static final MethodHandle ERROR = link("dlerror");

        private Dl() {}
    }

    private final String name;
    private final long handle;

    private SharedLibrary(String name, long handle) {
        this.name = name;
        this.handle = handle;
    }

    /** Opens a library by its path, or by a name for the linker to search; fails with the linker's reason. */
    static SharedLibrary open(String name) throws IOException {
        if (Linker.nativeLinker().defaultLookup().find("dlopen").isEmpty()) {
            throw new IOException(name + ": this system has no dlopen (expected: Linux)");
        }
        try (Arena arena = Arena.ofConfined()) {
            long handle = (long) Dl.OPEN.invokeExact(arena.allocateFrom(name).address(), RESOLVE_ALL);
            if (handle == 0) {
                throw new IOException(reason(name + ": cannot be opened"));
            }
            return new SharedLibrary(name, handle);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("dlopen: not called", e);
        }
    }

    /** Returns the address of a function; fails if the library does not export it. */
    MemorySegment find(String symbol) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            long address = (long)
                    Dl.FIND.invokeExact(handle, arena.allocateFrom(symbol).address());
            if (address == 0) {
                throw new IOException(name + ": exports no " + symbol);
            }
            return MemorySegment.ofAddress(address);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("dlsym: not called", e);
        }
    }

    /** Returns the text of the linker for this thread's last failure. */
    @SuppressWarnings("restricted")
    private static String reason(String otherwise) throws Throwable {
        long text = (long) Dl.ERROR.invokeExact();
        return text == 0
                ? otherwise
                : MemorySegment.ofAddress(text).reinterpret(Long.MAX_VALUE).getString(0, StandardCharsets.UTF_8);
    }

    @SuppressWarnings("restricted")
    private static MethodHandle link(String symbol, ValueLayout... parameters) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(symbol), FunctionDescriptor.of(ValueLayout.JAVA_LONG, parameters));
    }
}
