package dev.nereid.trouble;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Provides the backend {@code trouble}, which misbehaves on request. {@code OUTPUT0} is {@code INPUT0}, unless the
 * first number of the input selects misbehavior; models with the parameter {@code short} declare their executions
 * short. Immutable.
 */
public final class TroubleBackendProvider implements BackendProvider {
    public static final int EXIT = -1;
    public static final int FILL_HEAP = -2;
    public static final int FILL_HEAP_ELSEWHERE = -3;
    public static final int RECURSE = -4;
    public static final int WAIT = -5;
    public static final int FILL_METASPACE = -6;
    public static final int LEAK_THREADS = -7;

    /** The status of {@link #EXIT}. */
    public static final int STATUS = 7;

    private static final int CHUNK = 1 << 20;
    private static final int THREADS = 300;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public String name() {
        return "trouble";
    }

    @Override
    public Backend create(BackendContext context) {
        return TroubledModel::of;
    }

    private record TroubledModel(Path directory, Optional<BackendTraits.Execution> execution) implements Model {
        static TroubledModel of(ModelContext model) {
            if (model.settings().parameters().containsKey("exit_at_load")) {
                System.exit(STATUS);
            }
            return new TroubledModel(
                    model.modelDirectory(),
                    model.settings().parameters().containsKey("short")
                            ? Optional.of(BackendTraits.Execution.SHORT)
                            : Optional.empty());
        }

        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return this::execute;
        }

        private void execute(Batch batch) throws BackendException {
            for (InferenceRequest request : batch.requests()) {
                Tensor input = request.input("INPUT0").orElseThrow();
                switch ((int) input.data().get(FLOAT, 0)) {
                    case EXIT -> System.exit(STATUS);
                    case FILL_HEAP -> fill();
                    case FILL_HEAP_ELSEWHERE -> Thread.ofPlatform().start(() -> fill());
                    case FILL_METASPACE -> define();
                    case RECURSE -> request.fail(new BackendException(ErrorCode.INTERNAL, "depth " + depth(1)));
                    case LEAK_THREADS -> leakThreads();
                    case WAIT -> await(directory.resolve("gate"));
                    default -> {}
                }
                request.response().put("OUTPUT0", input, () -> {});
            }
        }

        private static int fill() {
            List<byte[]> chunks = new ArrayList<>();
            while (chunks.size() < Integer.MAX_VALUE) {
                chunks.add(new byte[CHUNK]);
            }
            return chunks.size();
        }

        private static void leakThreads() {
            for (int i = 0; i < THREADS; i++) {
                Thread.ofPlatform().name("leaked/" + i).daemon(true).start(LockSupport::park);
            }
        }

        /** Defines one class over and over, by a loader each. */
        private static int define() {
            String name = TroubledModel.class.getName();
            List<Class<?>> classes = new ArrayList<>();
            try (InputStream file = TroubledModel.class.getResourceAsStream("/" + name.replace('.', '/') + ".class")) {
                byte[] code = requireNonNull(file, name).readAllBytes();
                while (classes.size() < Integer.MAX_VALUE) {
                    classes.add(
                            new ClassLoader(TroubledModel.class.getClassLoader()) {
                                Class<?> define() {
                                    return defineClass(name, code, 0, code.length);
                                }
                            }.define());
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return classes.size();
        }

        private static int depth(int above) {
            return above <= 0 ? above : depth(above + 1) + 1;
        }

        private static void await(Path gate) {
            while (Files.exists(gate)) {
                LockSupport.parkNanos(LOOK_NANOS);
            }
        }
    }
}
