package dev.nereid.backend.tensorrt.presets;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/** Opens libraries by their names, where the dynamic linker finds them. Static functions only. */
final class LinkerLibrary {
    /** RTLD_NOW. */
    private static final int RESOLVE_ALL = 2;

    // Linked before any use: a look-up of a function forgets the reason of the failure before it.
    private static final MethodHandle OPEN = function("dlopen", ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
    private static final MethodHandle ERROR = function("dlerror");

    private LinkerLibrary() {}

    /** Opens a library, which stays in the process; fails with the linker's reason. */
    static void open(String name) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            long handle = (long) OPEN.invokeExact(arena.allocateFrom(name).address(), RESOLVE_ALL);
            if (handle == 0) {
                throw new IOException(reason(name));
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("dlopen: not called", e);
        }
    }

    @SuppressWarnings("restricted") // the text of the linker
    private static String reason(String name) throws Throwable {
        long text = (long) ERROR.invokeExact();
        return text == 0
                ? name + ": cannot be opened"
                : MemorySegment.ofAddress(text).reinterpret(Long.MAX_VALUE).getString(0, StandardCharsets.UTF_8);
    }

    @SuppressWarnings("restricted") // functions of the C library
    private static MethodHandle function(String name, ValueLayout... parameters) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(name), FunctionDescriptor.of(ValueLayout.JAVA_LONG, parameters));
    }
}
