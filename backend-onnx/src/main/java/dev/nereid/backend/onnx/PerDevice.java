package dev.nereid.backend.onnx;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Opens one object for the CPU and one for each GPU, which the instances there share. Safe for use by any thread.
 *
 * <p>An object is opened by the first call of {@link #get} for its device, and calls of other threads wait for it; objects
 * of different devices are opened at the same time. After a failure the next call tries again. The map is the only mutable
 * state: the thread that puts the task of a device there runs it, so that each object is opened once.
 *
 * @param <T> the type of the objects
 */
final class PerDevice<T> {
    /** Opens the object of a device. */
    @FunctionalInterface
    interface Opener<T> {
        T open(Device device);
    }

    private final Opener<T> opener;
    private final Consumer<T> closer;
    private final Map<Device, FutureTask<T>> opened = new ConcurrentHashMap<>();

    /** Creates it without objects. The closer must not throw. */
    PerDevice(Opener<T> opener, Consumer<T> closer) {
        this.opener = opener;
        this.closer = closer;
    }

    /**
     * Returns the object of a device, which is opened first if need be. Blocks.
     *
     * @param device a GPU; all other kinds of device share the object of {@link Device#CPU}
     * @throws BackendException if it cannot be opened
     */
    T get(Device device) {
        Device key = key(device);
        FutureTask<T> task = new FutureTask<>(() -> opener.open(key));
        FutureTask<T> earlier = opened.putIfAbsent(key, task);
        if (earlier != null) {
            return result(key, earlier);
        }
        task.run();
        return result(key, task);
    }

    /** Returns whether the object of a device was opened. */
    boolean has(Device device) {
        FutureTask<T> task = opened.get(key(device));
        return task != null && task.state() == FutureTask.State.SUCCESS;
    }

    private static Device key(Device device) {
        return device.kind() == Device.Kind.GPU ? device : Device.CPU;
    }

    private T result(Device key, FutureTask<T> task) {
        try {
            return task.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BackendException(ErrorCode.CANCELLED, "interrupted while the model was opened on " + key, e);
        } catch (ExecutionException e) {
            opened.remove(key, task);
            throw failure(e.getCause());
        }
    }

    private static BackendException failure(@Nullable Throwable cause) {
        return switch (cause) {
            case BackendException known -> known;
            case RuntimeException unchecked -> throw unchecked;
            case Error error -> throw error;
            case null, default -> throw new IllegalStateException("unexpected failure", cause);
        };
    }

    /** Closes the opened objects. Called once, after the last call of {@link #get}. */
    void close() {
        for (FutureTask<T> task : opened.values()) {
            if (task.state() == FutureTask.State.SUCCESS) {
                closer.accept(task.resultNow());
            }
        }
        opened.clear();
    }
}
