package dev.nereid.backend.tensorflow.capi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import dev.nereid.backend.natives.ReferenceCount;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * A loaded model: a graph and a session that runs it. Any thread may use it, several at a time; each thread runs it
 * through a separate {@link TfExecution}.
 *
 * <p>A closed session creates no further executions. Graph and session are released when the last execution is closed,
 * on the closing thread.
 */
public final class TfSession implements AutoCloseable {
    private final TfLibrary library;
    private final TfApi api;
    private final long graph;
    private final long handle;
    private final ReferenceCount references = new ReferenceCount("session", this::unload);

    private TfSession(TfLibrary library, long graph, long handle) {
        this.library = library;
        this.api = library.api();
        this.graph = graph;
        this.handle = handle;
    }

    /** Creates a session for an empty graph, and fills the graph, in one order or the other. */
    private interface Loading {
        long load(TfApi api, Arena scratch, TfStatus status, long options, long graph) throws TfException;
    }

    /**
     * Loads a SavedModel: its graph and the values of its variables; runs what initializes its tables.
     *
     * @param config a serialized {@code ConfigProto}
     * @throws TfException if TensorFlow cannot load it
     * @throws IllegalStateException if the library was closed
     */
    public static TfSession openSavedModel(TfLibrary library, Path directory, List<String> tags, byte[] config)
            throws TfException {
        return open(library, config, (api, scratch, status, options, graph) -> {
            MemorySegment names = scratch.allocate(JAVA_LONG, Math.max(1, tags.size()));
            for (int i = 0; i < tags.size(); i++) {
                names.setAtIndex(JAVA_LONG, i, CStrings.write(scratch, tags.get(i)));
            }
            long path = CStrings.write(scratch, directory.toAbsolutePath().toString());
            long metaGraph = api.create(TfFunction.NewBuffer);
            try {
                return api.loadSavedModel(
                        options, path, names.address(), tags.size(), graph, metaGraph, status.handle());
            } finally {
                api.call(TfFunction.DeleteBuffer, metaGraph);
            }
        });
    }

    /**
     * Loads a graph in which variables, if any, are constants.
     *
     * @param graphDef a serialized {@code GraphDef} in native memory
     * @param config a serialized {@code ConfigProto}
     * @throws TfException if TensorFlow cannot load it
     * @throws IllegalStateException if the library was closed
     */
    public static TfSession openGraph(TfLibrary library, MemorySegment graphDef, byte[] config) throws TfException {
        return open(library, config, (api, scratch, status, options, graph) -> {
            MemorySegment buffer = scratch.allocate(JAVA_LONG, 3); // struct TF_Buffer: data, length, no deallocator
            buffer.setAtIndex(JAVA_LONG, 0, graphDef.address());
            buffer.setAtIndex(JAVA_LONG, 1, graphDef.byteSize());
            long importing = api.create(TfFunction.NewImportGraphDefOptions);
            try {
                api.call(TfFunction.GraphImportGraphDef, graph, buffer.address(), importing, status.handle());
            } finally {
                api.call(TfFunction.DeleteImportGraphDefOptions, importing);
            }
            status.check();
            return api.pointer(TfFunction.NewSession, graph, options, status.handle());
        });
    }

    private static TfSession open(TfLibrary library, byte[] config, Loading loading) throws TfException {
        library.references().retain();
        TfApi api = library.api();
        long graph = 0;
        try (Arena scratch = Arena.ofConfined();
                TfStatus status = new TfStatus(api)) {
            graph = api.create(TfFunction.NewGraph);
            long options = api.create(TfFunction.NewSessionOptions);
            try {
                MemorySegment proto = scratch.allocateFrom(JAVA_BYTE, config);
                api.call(TfFunction.SetConfig, options, proto.address(), config.length, status.handle());
                status.check();
                long handle = loading.load(api, scratch, status, options, graph);
                status.check();
                return new TfSession(library, graph, handle);
            } finally {
                api.call(TfFunction.DeleteSessionOptions, options);
            }
        } catch (TfException | RuntimeException e) {
            if (graph != 0) {
                api.call(TfFunction.DeleteGraph, graph);
            }
            library.references().release();
            throw e;
        }
    }

    /** Returns the number of devices of a type, such as {@code GPU}, for the session; fails if that is not known. */
    public int devices(String type) throws TfException {
        references.retain();
        try (TfStatus status = new TfStatus(api)) {
            long devices = api.pointer(TfFunction.SessionListDevices, handle, status.handle());
            status.check();
            try {
                int found = 0;
                int count = api.number(TfFunction.DeviceListCount, devices);
                for (int i = 0; i < count; i++) {
                    String name = CStrings.read(api.pointer(TfFunction.DeviceListType, devices, i, status.handle()));
                    found += name.equals(type) ? 1 : 0;
                }
                return found;
            } finally {
                api.call(TfFunction.DeleteDeviceList, devices);
            }
        } finally {
            references.release();
        }
    }

    /**
     * Creates a way to run the graph, for one thread at a time.
     *
     * @param inputs the tensors that are fed, such as {@code input:0}
     * @param outputs the tensors that can be fetched
     * @throws IllegalArgumentException if the graph has no such tensor
     * @throws IllegalStateException if the session was closed
     */
    public TfExecution newExecution(List<String> inputs, List<String> outputs) {
        return new TfExecution(this, inputs, outputs);
    }

    /**
     * Runs operations for their effect, such as the initialization of tables.
     *
     * @throws TfException if one fails
     * @throws IllegalArgumentException if the graph has no such operation
     */
    public void runOperations(List<String> names) throws TfException {
        references.retain();
        try (Arena scratch = Arena.ofConfined();
                TfStatus status = new TfStatus(api)) {
            for (String name : names) {
                MemorySegment target = scratch.allocateFrom(JAVA_LONG, operation(name));
                api.run(handle, 0, 0, 0, 0, 0, 0, target.address(), 1, status.handle());
                status.check();
            }
        } finally {
            references.release();
        }
    }

    /** Returns the type and shape of a tensor in the graph. */
    public TfTensorInfo tensor(String name) {
        references.retain();
        try {
            TfPort port = port(name);
            return new TfTensorInfo(port.type(), port.shape());
        } finally {
            references.release();
        }
    }

    /** Returns whether operations of these types pass on references to variables or tables, as in TensorFlow 1. */
    public boolean hasReferences(Predicate<String> types) {
        references.retain();
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment position = scratch.allocate(JAVA_LONG);
            while (true) {
                long operation = api.pointer(TfFunction.GraphNextOperation, graph, position.address());
                if (operation == 0) {
                    return false;
                }
                if (hasReference(operation)
                        && types.test(CStrings.read(api.pointer(TfFunction.OperationOpType, operation)))) {
                    return true;
                }
            }
        } finally {
            references.release();
        }
    }

    private boolean hasReference(long operation) {
        int outputs = api.number(TfFunction.OperationNumOutputs, operation);
        return IntStream.range(0, outputs)
                .anyMatch(i -> api.number(TfFunction.OperationOutputType, operation, i) > TfDataType.REFERENCES);
    }

    /** Returns the place of a tensor such as {@code name:0}; called while the session is retained. */
    TfPort port(String tensor) {
        int colon = tensor.lastIndexOf(':');
        boolean hasIndex = colon > 0 && tensor.substring(colon + 1).matches("\\d{1,9}");
        long operation = operation(hasIndex ? tensor.substring(0, colon) : tensor);
        int index = hasIndex ? Integer.parseInt(tensor.substring(colon + 1)) : 0;
        if (index >= api.number(TfFunction.OperationNumOutputs, operation)) {
            throw new IllegalArgumentException("tensor '" + tensor + "': missing (expected: an output of the graph)");
        }
        TfDataType type = TfDataType.of(api.number(TfFunction.OperationOutputType, operation, index));
        return new TfPort(operation, index, type, shape(operation, index));
    }

    private Optional<long[]> shape(long operation, int index) {
        try (Arena scratch = Arena.ofConfined();
                TfStatus status = new TfStatus(api)) {
            int rank = api.number(TfFunction.GraphGetTensorNumDims, graph, operation, index, status.handle());
            if (rank < 0) {
                return Optional.empty();
            }
            MemorySegment dims = scratch.allocate(JAVA_LONG, Math.max(1, rank));
            api.call(TfFunction.GraphGetTensorShape, graph, operation, index, dims.address(), rank, status.handle());
            return Optional.of(dims.asSlice(0, rank * JAVA_LONG.byteSize()).toArray(JAVA_LONG));
        }
    }

    private long operation(String name) {
        try (Arena scratch = Arena.ofConfined()) {
            long operation = api.pointer(TfFunction.GraphOperationByName, graph, CStrings.write(scratch, name));
            if (operation == 0) {
                throw new IllegalArgumentException(
                        "operation '" + name + "': missing (expected: an operation of the graph)");
            }
            return operation;
        }
    }

    TfLibrary library() {
        return library;
    }

    /** Returns the reference count of the session. Executions retain it for their lifetime. */
    ReferenceCount references() {
        return references;
    }

    /** Returns the handle; valid between {@code retain} and {@code release} of {@link #references} only. */
    long handle() {
        return handle;
    }

    /** Prevents further executions, and releases the model when none is left. */
    @Override
    public void close() {
        references.close();
    }

    private void unload() {
        try (TfStatus status = new TfStatus(api)) {
            api.call(TfFunction.CloseSession, handle, status.handle());
            api.call(TfFunction.DeleteSession, handle, status.handle());
            api.call(TfFunction.DeleteGraph, graph);
        } finally {
            library.references().release();
        }
    }
}
