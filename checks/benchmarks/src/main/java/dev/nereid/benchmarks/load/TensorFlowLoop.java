package dev.nereid.benchmarks.load;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;

/**
 * Ceiling of TensorFlow models: {@code TF_SessionRun} in a loop on one thread, with a new input tensor and the release of
 * the output each time, as the C API demands. Owned by, and confined to, the thread that measures.
 */
public final class TensorFlowLoop implements Workload, AutoCloseable {
    private static final Path MAPS = Path.of("/proc/self/maps");
    private static final String LIBRARY = "libtensorflow_cc.so.2";
    private static final Linker LINKER = Linker.nativeLinker();
    private static final long ALIGNMENT = 64;
    private static final int FLOAT = 1;
    private static final int NUM_THREADS_FIELD = 0x10;
    private static final int INTER_OP_FIELD = 0x28;

    private final String name;
    private final Arena arena = Arena.ofShared();
    private final SymbolLookup library;
    private final MethodHandle newTensor;
    private final MethodHandle deleteTensor;
    private final MethodHandle sessionRun;
    private final MethodHandle getCode;
    private final MemorySegment status;
    private final MemorySegment session;
    private final MemorySegment graph;
    private final MemorySegment dims;
    private final MemorySegment data;
    private final MemorySegment feed;
    private final MemorySegment fetch;
    private final MemorySegment inputValue;
    private final MemorySegment outputValue;
    private final MemorySegment nothing = LINKER.defaultLookup().findOrThrow("abs");
    private final long batch;

    @SuppressWarnings("restricted") // the bare C API
    private TensorFlowLoop(Path savedModel, InferBody body, String output, int threads) throws IOException {
        batch = body.shape()[0];
        name = "TF_SessionRun, batch " + batch;
        library = SymbolLookup.libraryLookup(loadedLibrary(), arena);
        newTensor = handle(
                "TF_NewTensor",
                FunctionDescriptor.of(ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS));
        deleteTensor = handle("TF_DeleteTensor", FunctionDescriptor.ofVoid(ADDRESS));
        getCode = handle("TF_GetCode", FunctionDescriptor.of(JAVA_INT, ADDRESS));
        sessionRun = handle(
                "TF_SessionRun",
                FunctionDescriptor.ofVoid(
                        ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, JAVA_INT,
                        ADDRESS, ADDRESS));
        dims = arena.allocateFrom(JAVA_LONG, body.shape());
        MemorySegment content = MemorySegment.ofBuffer(body.tensor());
        data = arena.allocate(content.byteSize(), ALIGNMENT).copyFrom(content);
        status = create("TF_NewStatus");
        graph = create("TF_NewGraph");
        session = open(savedModel, threads);
        feed = port(body.input());
        fetch = port(output);
        inputValue = arena.allocate(ADDRESS);
        outputValue = arena.allocate(ADDRESS);
    }

    /**
     * Loads a model with the library that a server in this process has loaded. The caller closes the loop.
     *
     * @param body the input, named as its operation; its first dimension is the batch
     * @param output the operation that has the fetched result
     * @param threads the threads for one operation, as the server has them
     */
    public static TensorFlowLoop load(Path savedModel, InferBody body, String output, int threads) throws IOException {
        return new TensorFlowLoop(savedModel, body, output, threads);
    }

    private static Path loadedLibrary() throws IOException {
        try (Stream<String> lines = Files.lines(MAPS)) {
            return lines.filter(line -> line.endsWith(LIBRARY))
                    .map(line -> Path.of(line.substring(line.indexOf('/'))))
                    .findFirst()
                    .orElseThrow(() -> new IOException(LIBRARY + ": not loaded (expected: by a server)"));
        }
    }

    @SuppressWarnings("restricted")
    private MethodHandle handle(String function, FunctionDescriptor descriptor) {
        return LINKER.downcallHandle(library.findOrThrow(function), descriptor);
    }

    private MemorySegment create(String function) throws IOException {
        return (MemorySegment) call(handle(function, FunctionDescriptor.of(ADDRESS)));
    }

    private static Object call(MethodHandle function, Object... arguments) throws IOException {
        try {
            return function.invokeWithArguments(arguments);
        } catch (Throwable e) {
            throw new IOException(e);
        }
    }

    private MemorySegment open(Path savedModel, int threads) throws IOException {
        MemorySegment options = create("TF_NewSessionOptions");
        byte[] config = config(threads);
        call(
                handle("TF_SetConfig", FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, JAVA_LONG, ADDRESS)),
                options,
                arena.allocateFrom(ValueLayout.JAVA_BYTE, config),
                (long) config.length,
                status);
        MemorySegment tags = arena.allocate(ADDRESS);
        tags.set(ADDRESS, 0, arena.allocateFrom("serve"));
        MemorySegment opened = (MemorySegment) call(
                handle(
                        "TF_LoadSessionFromSavedModel",
                        FunctionDescriptor.of(
                                ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS, ADDRESS)),
                options,
                MemorySegment.NULL,
                arena.allocateFrom(savedModel.toAbsolutePath().toString()),
                tags,
                1,
                graph,
                MemorySegment.NULL,
                status);
        requireOk();
        return opened;
    }

    /** A {@code ConfigProto} as the server's: one operation after another on the calling thread. */
    private static byte[] config(int threads) {
        ByteArrayOutputStream config = new ByteArrayOutputStream();
        config.write(NUM_THREADS_FIELD);
        config.write(threads);
        config.write(INTER_OP_FIELD); // -1
        config.writeBytes(new byte[] {-1, -1, -1, -1, -1, -1, -1, -1, -1, 1});
        byte[] executor = "SINGLE_THREADED_EXECUTOR".getBytes(StandardCharsets.US_ASCII);
        config.writeBytes(new byte[] {(byte) 0x82, 1, (byte) (executor.length + 2), 0x1a, (byte) executor.length});
        config.writeBytes(executor);
        return config.toByteArray();
    }

    /** A {@code TF_Output}: the first result of an operation. */
    private MemorySegment port(String operation) throws IOException {
        MemorySegment found = (MemorySegment) call(
                handle("TF_GraphOperationByName", FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS)),
                graph,
                arena.allocateFrom(operation));
        if (found.address() == 0) {
            throw new IOException(operation + ": not in the graph");
        }
        MemorySegment port =
                arena.allocate(MemoryLayout.structLayout(ADDRESS, JAVA_INT, MemoryLayout.paddingLayout(4)));
        port.set(ADDRESS, 0, found);
        return port;
    }

    private void requireOk() throws IOException {
        int code;
        try {
            code = (int) getCode.invokeExact(status);
        } catch (Throwable e) {
            throw new IOException(e);
        }
        if (code != 0) {
            throw new IOException(name + ": TensorFlow error " + code);
        }
    }

    private void run() throws IOException {
        try {
            MemorySegment tensor = (MemorySegment) newTensor.invokeExact(
                    FLOAT,
                    dims,
                    (int) (dims.byteSize() / JAVA_LONG.byteSize()),
                    data,
                    data.byteSize(),
                    nothing,
                    MemorySegment.NULL);
            inputValue.set(ADDRESS, 0, tensor);
            sessionRun.invokeExact(
                    session,
                    MemorySegment.NULL,
                    feed,
                    inputValue,
                    1,
                    fetch,
                    outputValue,
                    1,
                    MemorySegment.NULL,
                    0,
                    MemorySegment.NULL,
                    status);
            requireOk();
            deleteTensor.invokeExact(tensor);
            deleteTensor.invokeExact(outputValue.get(ADDRESS, 0));
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw new IOException(e);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException {
        return LatencyHistogram.ofCalls(this::run, time, batch);
    }

    @Override
    public void close() throws IOException {
        FunctionDescriptor two = FunctionDescriptor.ofVoid(ADDRESS, ADDRESS);
        call(handle("TF_CloseSession", two), session, status);
        call(handle("TF_DeleteSession", two), session, status);
        arena.close();
    }
}
