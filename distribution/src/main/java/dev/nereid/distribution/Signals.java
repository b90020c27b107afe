package dev.nereid.distribution;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Handles signals of the operating system by {@code sun.misc.Signal} of the supported module {@code jdk.unsupported}.
 * Called by reflection: the compiler warns of it, and lets nobody say that this is known. Static functions only.
 */
final class Signals {
    private Signals() {}

    /**
     * Has a signal handled in place of what the JVM does, on a thread of its own each time. Does nothing where the JVM
     * was told to leave signals alone.
     *
     * @param name the name without {@code SIG}
     * @param action is given the number of the signal
     */
    static void handle(String name, IntConsumer action) {
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
            signal.getMethod("handle", signal, handler)
                    .invoke(null, signal.getConstructor(String.class).newInstance(name), proxy);
        } catch (ReflectiveOperationException e) {
            // No such module, or -Xrs: signals end the process without any of this.
        }
    }

    /** Does what methods of {@link Object} do; those of the handler return nothing. */
    @SuppressWarnings("ReferenceEquality") // Each handler is one of its own.
    private static @Nullable Object ofObject(Object self, Method method, Object @Nullable [] arguments) {
        return switch (method.getName()) {
            case "equals" -> arguments != null && self == arguments[0];
            case "hashCode" -> System.identityHashCode(self);
            case "toString" -> "handler of a signal";
            default -> null;
        };
    }
}
