package dev.nereid.trouble;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Provides the backend {@code trouble}, which misbehaves on request. {@code OUTPUT0} is {@code INPUT0}, unless the
 * first number of the input selects misbehavior, which lasts while the file {@code gate} is in the model's directory.
 * Models with the parameter {@code short} declare their executions short; those with {@code wait_in_load},
 * {@code wait_in_close}, {@code wait_in_model_close} and {@code wait_in_check} wait for the gate there. Immutable.
 */
public final class TroubleBackendProvider implements BackendProvider {
    public static final int EXIT = -1;
    public static final int FILL_HEAP = -2;
    public static final int FILL_HEAP_ELSEWHERE = -3;
    public static final int RECURSE = -4;
    public static final int WAIT = -5;
    public static final int FILL_METASPACE = -6;
    public static final int LEAK_THREADS = -7;
    public static final int EXHAUST_DIRECT_MEMORY = -8;
    public static final int DEFER = -9;
    public static final int CHANGE_OUTPUT = -10;
    public static final int LOOP = -11;
    public static final int EXIT_ELSEWHERE = -12;
    public static final int CALL = -13;
    public static final int LEAK_HEAP = -14;

    /** Fills the heap, and keeps it full. */
    public static final int KEEP_HEAP = -30;

    public static final int KEEP_RESPONSE = -15;
    public static final int FORGET_RESPONSE = -16;
    public static final int KEEP_SENDER = -25;
    public static final int FORGET_SENDER = -26;
    public static final int KEEP_LEASE = -27;
    public static final int FORGET_LEASE = -28;

    /** Ends the senders and leases that were kept. */
    public static final int END_KEPT = -29;

    public static final int KEEP_MEMORY = -17;
    public static final int FORGET_MEMORY = -18;
    public static final int LISTEN = -19;
    public static final int WRONG_RANK = -20;
    public static final int WRONG_DIMENSION = -21;
    public static final int WRONG_TYPE = -22;
    public static final int NO_OUTPUT = -23;
    public static final int UNKNOWN_OUTPUT = -24;

    /** The bytes of {@link #KEEP_MEMORY} and {@link #FORGET_MEMORY}. */
    public static final int BYTES = 1000;

    /** The status of {@link #EXIT}. */
    public static final int STATUS = 7;

    private static final int CHUNK = 1 << 20;
    private static final int MIN_CHUNK = 1 << 8;
    private static final List<byte[]> FULL = new ArrayList<>();

    /** The part of the largest heap that {@link #LEAK_HEAP} fills. */
    private static final double LEAKED_PART = 0.9;

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

    private static final List<AutoCloseable> KEPT = new CopyOnWriteArrayList<>();

    private static final List<Runnable> UNENDED = new CopyOnWriteArrayList<>();

    private record TroubledModel(
            Path directory,
            Optional<BackendTraits.Execution> execution,
            Parameters parameters,
            ModelContext context,
            List<byte[]> leaked)
            implements Model {
        static TroubledModel of(ModelContext model) {
            if (model.parameters().value("exit_at_load").isPresent()) {
                System.exit(STATUS);
            }
            if (model.parameters().value("wait_in_load").isPresent()) {
                await(model.modelDirectory().resolve("gate"));
            }
            return new TroubledModel(
                    model.modelDirectory(),
                    model.parameters().value("short").isPresent()
                            ? Optional.of(BackendTraits.Execution.SHORT)
                            : Optional.empty(),
                    model.parameters(),
                    model,
                    new CopyOnWriteArrayList<>());
        }

        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return new ModelInstance() {
                @Override
                public void execute(Batch batch) {
                    TroubledModel.this.execute(batch, context);
                }

                @Override
                public CompletionStage<Void> checkReady() {
                    waitIn("wait_in_check");
                    return CompletableFuture.completedFuture(null);
                }

                @Override
                public void close() {
                    waitIn("wait_in_close");
                }
            };
        }

        @Override
        public void close() {
            waitIn("wait_in_model_close");
        }

        private void waitIn(String parameter) {
            if (parameters.value(parameter).isPresent()) {
                await(gate());
            }
        }

        private Path gate() {
            return directory.resolve("gate");
        }

        private void execute(Batch batch, InstanceContext instance) {
            for (InferenceRequest request : batch.requests()) {
                Tensor input = request.input("INPUT0").orElseThrow();
                switch ((int) input.data().get(FLOAT, 0)) {
                    case EXIT -> System.exit(STATUS);
                    case FILL_HEAP -> fill(new ArrayList<>());
                    case KEEP_HEAP -> fill(FULL);
                    case FILL_HEAP_ELSEWHERE -> Thread.ofPlatform().start(() -> fill(new ArrayList<>()));
                    case FILL_METASPACE -> define();
                    case RECURSE -> request.fail(new BackendException(ErrorCode.INTERNAL, "depth " + depth(1)));
                    case LEAK_THREADS -> leakThreads(gate());
                    case WAIT -> await(gate());
                    case LOOP -> loop(gate());
                    case LEAK_HEAP -> leakHeap();
                    case KEEP_RESPONSE -> KEPT.add(ask(request, input));
                    case FORGET_RESPONSE -> ask(request, input);
                    case KEEP_MEMORY -> KEPT.add(leak(instance));
                    case FORGET_MEMORY -> leak(instance);
                    case LISTEN -> listen();
                    case KEEP_SENDER -> sendAndKeep(request, input);
                    case FORGET_SENDER -> request.sender();
                    case KEEP_LEASE -> UNENDED.add(request.leaseInputs());
                    case FORGET_LEASE -> request.leaseInputs();
                    case END_KEPT -> {
                        UNENDED.forEach(Runnable::run);
                        UNENDED.clear();
                    }
                    case EXHAUST_DIRECT_MEMORY -> exhaustDirectMemory(gate());
                    case EXIT_ELSEWHERE -> Thread.ofPlatform().name("exiting").start(() -> System.exit(STATUS));
                    default -> {}
                }
                switch ((int) input.data().get(FLOAT, 0)) {
                    case DEFER -> defer(batch, request, input);
                    case CALL -> call(batch, request, input);
                    case CHANGE_OUTPUT -> putAndChange(request, input);
                    case KEEP_SENDER, FORGET_SENDER -> {}
                    case WRONG_RANK -> request.response().allocate("OUTPUT0", DataType.FP32, Shape.of(1, 1));
                    case WRONG_DIMENSION -> request.response().allocate("OUTPUT0", DataType.FP32, Shape.of(2));
                    case WRONG_TYPE -> request.response().allocate("OUTPUT0", DataType.INT32, Shape.of(1));
                    case NO_OUTPUT -> {}
                    case UNKNOWN_OUTPUT -> {
                        request.response().put("OUTPUT0", input, () -> {});
                        request.response().allocate("OUTPUT9", DataType.FP32, Shape.of(1));
                    }
                    default -> request.response().put("OUTPUT0", input, () -> {});
                }
            }
        }

        /** Allocates memory that is not closed. */
        private static AllocatedMemory leak(InstanceContext instance) {
            return instance.allocate(MemoryPlace.HOST, BYTES);
        }

        private void listen() {
            context.onLogLevel(_ -> {});
        }

        /** Sends the one response of the request, and does not end its sender. */
        private static void sendAndKeep(InferenceRequest request, Tensor input) {
            ResponseSender sender = request.sender();
            InferenceResponse response = sender.newResponse();
            response.put("OUTPUT0", input);
            sender.send(response);
            UNENDED.add(sender::complete);
        }

        private static void loop(Path gate) {
            while (Files.exists(gate)) {
                Thread.onSpinWait();
            }
        }

        private static void exhaustDirectMemory(Path gate) {
            List<ByteBuffer> kept = new ArrayList<>();
            try {
                while (Files.exists(gate)) {
                    kept.add(ByteBuffer.allocateDirect(Integer.MAX_VALUE));
                }
            } finally {
                Reference.reachabilityFence(kept);
            }
        }

        /** Finishes the execution on another thread, which waits for the gate. */
        private void defer(Batch batch, InferenceRequest request, Tensor input) {
            DeferredExecution execution = batch.defer();
            request.response().put("OUTPUT0", input, () -> {});
            Thread.ofPlatform().name("deferred").start(() -> {
                await(gate());
                execution.complete();
            });
        }

        /** Sends the input to the model of the parameter "callee", and waits for the gate in an action on the response. */
        private void call(Batch batch, InferenceRequest request, Tensor input) {
            DeferredExecution execution = batch.defer();
            request.response().put("OUTPUT0", input, () -> {});
            context.models()
                    .request(parameters.required("callee"))
                    .onBehalfOf(request)
                    .input("INPUT0", input)
                    .send()
                    .whenComplete((response, failure) -> {
                        if (response != null) {
                            response.close();
                        }
                        await(gate());
                        execution.complete();
                    });
        }

        /** Returns the response of the model of the parameter "callee" to the input, which is not closed. */
        private ModelResponse ask(InferenceRequest request, Tensor input) {
            try {
                return context.models()
                        .request(parameters.required("callee"))
                        .onBehalfOf(request)
                        .input("INPUT0", input)
                        .sendAndWait();
            } catch (InterruptedException e) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted", e);
            }
        }

        /** Passes memory of its own as the output, and writes to it until the server releases it. */
        private static void putAndChange(InferenceRequest request, Tensor input) {
            Arena arena = Arena.ofShared();
            MemorySegment memory = arena.allocate(input.byteSize());
            AtomicBoolean released = new AtomicBoolean();
            Thread _ = Thread.ofPlatform().name("changing").start(() -> {
                while (!released.get()) {
                    memory.set(FLOAT, 0, memory.get(FLOAT, 0) + 1);
                }
                arena.close();
            });
            request.response().put("OUTPUT0", Tensor.of(input.type(), input.shape(), memory), () -> released.set(true));
        }

        /** Keeps the last ones of the arrays that it allocates, so many that the heap is nearly full; none without the gate. */
        private void leakHeap() {
            if (!Files.exists(gate())) {
                leaked.clear();
            }
            Runtime.getRuntime().gc();
            while (Files.exists(gate()) && usedPart() < LEAKED_PART) {
                leaked.add(new byte[CHUNK]);
            }
            if (!leaked.isEmpty()) {
                leaked.removeFirst();
                leaked.add(new byte[CHUNK]);
            }
            Runtime.getRuntime().gc();
        }

        private static double usedPart() {
            Runtime runtime = Runtime.getRuntime();
            return (double) (runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory();
        }

        /** Allocates chunks of decreasing sizes, so that less and less is left, and then one too many. */
        private static void fill(List<byte[]> chunks) {
            for (int size = CHUNK; ; size = Math.max(MIN_CHUNK, size / 2)) {
                try {
                    while (chunks.size() < Integer.MAX_VALUE) {
                        chunks.add(new byte[size]);
                    }
                } catch (OutOfMemoryError e) {
                    if (size == MIN_CHUNK) {
                        throw e;
                    }
                }
            }
        }

        /** Starts threads that stay as long as the gate, and for good without one. */
        private static void leakThreads(Path gate) {
            Runnable task = Files.exists(gate) ? () -> await(gate) : LockSupport::park;
            for (int i = 0; i < THREADS; i++) {
                Thread.ofPlatform().name("leaked/" + i).daemon(true).start(task);
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
