package dev.nereid.testkit.contract;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Calls a backend, which has to leave the context class loader as it is. Static functions only. */
final class ContextLoader {
    /** A call without a result. */
    interface Action {
        void run();
    }

    /** A call with a result; a backend may return {@code null} although the SPI forbids it. */
    interface Call<T> {
        @Nullable
        T run();
    }

    private ContextLoader() {}

    /**
     * Calls a method.
     *
     * @throws AssertionError if it changed the context class loader of the thread
     */
    static void keeping(String method, Action action) {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        action.run();
        ClassLoader after = Thread.currentThread().getContextClassLoader();
        if (!Objects.equals(before, after)) {
            throw new AssertionError(
                    "context class loader after " + method + ": " + after + " (expected: " + before + ", as before)");
        }
    }

    /**
     * Calls a method that returns an object.
     *
     * @throws AssertionError if it returned {@code null}, or changed the context class loader of the thread
     */
    static <T> T returned(String method, Call<T> call) {
        AtomicReference<@Nullable T> returned = new AtomicReference<>();
        keeping(method, () -> returned.set(call.run()));
        T result = returned.get();
        if (result == null) {
            throw new AssertionError(method + ": returned null (expected: an object)");
        }
        return result;
    }
}
