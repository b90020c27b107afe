package dev.nereid.benchmarks.pytorch;

import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.LatencyHistogram;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Ceiling of PyTorch models: the module called in a loop on one thread, by the presets that a server of this process has
 * loaded. Owned by, and confined to, the thread that measures.
 */
final class TorchLoop implements Workload, AutoCloseable {
    /** Where servers of a process keep the class loaders of what their plugins share. */
    private static final String REGISTRY = "dev.nereid:type=SharedLibraries";

    private static final String LIBRARY = "pytorch";
    private static final int LOADER = 2;

    private final String name;
    private final Class<?> type;
    private final Runnable call;
    private final int threads;
    private final long batch;

    private TorchLoop(Class<?> type, Runnable call, int threads, long batch) {
        this.type = type;
        this.call = call;
        this.threads = threads;
        this.batch = batch;
        name = "JitModule.forward, batch " + batch;
    }

    /**
     * Loads a module from the model's file.
     *
     * @param body its input; the first dimension is the batch
     * @param threads the threads that a call computes with, as the server has them
     */
    static TorchLoop load(Path file, InferBody body, int threads) throws IOException {
        try {
            Class<?> type = Class.forName(TorchCall.class.getName(), true, new BesidePresets(presets()));
            ByteBuffer tensor = body.tensor();
            byte[] input = new byte[tensor.remaining()];
            tensor.get(input);
            Runnable call = (Runnable) type.getConstructor(String.class, byte[].class, long[].class)
                    .newInstance(file.toString(), input, body.dims());
            return new TorchLoop(type, call, threads, body.dims()[0]);
        } catch (ReflectiveOperationException | JMException e) {
            throw new IOException(e);
        }
    }

    private static ClassLoader presets() throws JMException {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        List<?> library = (List<?>) server.invoke(
                new ObjectName(REGISTRY), "get", new Object[] {LIBRARY}, new String[] {Object.class.getName()});
        return (ClassLoader) library.get(LOADER);
    }

    /** Defines {@link TorchCall} once more, for the presets of another class loader. */
    private static final class BesidePresets extends ClassLoader {
        BesidePresets(ClassLoader presets) {
            super(presets);
        }

        @Override
        protected Class<?> findClass(String className) throws ClassNotFoundException {
            try (InputStream content =
                    TorchCall.class.getResourceAsStream("/" + className.replace('.', '/') + ".class")) {
                if (content == null) {
                    throw new ClassNotFoundException(className);
                }
                byte[] bytes = content.readAllBytes();
                return defineClass(className, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(className, e);
            }
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException {
        try {
            type.getMethod("threads", int.class).invoke(null, threads);
        } catch (ReflectiveOperationException e) {
            throw new IOException(e);
        }
        return LatencyHistogram.ofCalls(call::run, time, batch);
    }

    @Override
    public void close() throws IOException {
        try {
            ((AutoCloseable) call).close();
        } catch (Exception e) {
            throw new IOException(e);
        }
    }
}
