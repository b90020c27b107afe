package dev.nereid.distribution.process;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.IntConsumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Installs signal handlers by {@code sun.misc.Signal}, through reflection. The compiler's warning about that class
 * cannot be suppressed. Static functions only.
 */
public final class Signals {
    private static final Path STATUS = Path.of("/proc/self/status");
    private static final String IGNORED = "SigIgn:";

    private Signals() {}

    /**
     * Replaces the JVM's handler of a signal. The handler runs on a new thread each time, also if the process was
     * started with the signal ignored, as shells do for commands in the background. Does nothing if the JVM runs with
     * {@code -Xrs}.
     *
     * @param name the name without {@code SIG}
     */
    public static void handle(String name, IntConsumer action) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Method number = signal.getMethod("getNumber");
            Object proxy = Proxy.newProxyInstance(
                    Signals.class.getClassLoader(), new Class<?>[] {handler}, (self, method, arguments) -> {
                        if (method.getDeclaringClass().equals(handler)) {
                            action.accept((int) number.invoke(arguments[0]));
                        }
                        return ofObject(self, method, arguments);
                    });
            Object handled = signal.getConstructor(String.class).newInstance(name);
            int value = (int) number.invoke(handled);
            if (isIgnored(value)) {
                restore(value);
            }
            signal.getMethod("handle", signal, handler).invoke(null, handled, proxy);
        } catch (ReflectiveOperationException e) {
            // No such module, or -Xrs: signals end the process without any of this.
        }
    }

    /** Returns whether the process ignores a signal; {@code false} without {@code /proc}. */
    private static boolean isIgnored(int number) {
        try (Stream<String> lines = Files.lines(STATUS)) {
            return lines.filter(line -> line.startsWith(IGNORED))
                    .map(line -> line.substring(IGNORED.length()).strip())
                    .anyMatch(mask -> (Long.parseUnsignedLong(mask, 16) >>> (number - 1) & 1) != 0);
        } catch (IOException | UncheckedIOException | NumberFormatException e) {
            return false;
        }
    }

    /** Sets a signal back to its default, by {@code signal(2)}; the JVM does not handle one ignored at its start. */
    @SuppressWarnings("restricted") // a call of a native function, which the manifest allows
    private static void restore(int number) {
        Linker linker = Linker.nativeLinker();
        Optional<MemorySegment> function = linker.defaultLookup().find("signal");
        if (function.isEmpty()) {
            return;
        }
        try {
            MethodHandle signal = linker.downcallHandle(
                    function.get(),
                    FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
            MemorySegment _ = (MemorySegment) signal.invokeExact(number, MemorySegment.NULL);
        } catch (IllegalCallerException e) {
            // Native access is denied: the signal stays ignored.
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) { // declared by invokeExact; a native function throws nothing
            throw new IllegalStateException("signal: " + e, e);
        }
    }

    /** Implements the methods of {@link Object}; methods of the handler return nothing. */
    @SuppressWarnings("ReferenceEquality") // Handlers are equal only if identical.
    private static @Nullable Object ofObject(Object self, Method method, Object @Nullable [] arguments) {
        return switch (method.getName()) {
            case "equals" -> arguments != null && self == arguments[0];
            case "hashCode" -> System.identityHashCode(self);
            case "toString" -> "handler of a signal";
            default -> null;
        };
    }
}
