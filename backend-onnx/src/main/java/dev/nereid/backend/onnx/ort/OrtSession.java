package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import dev.nereid.backend.natives.ReferenceCount;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A loaded model. Any thread may use it, several at a time; each thread runs it through a separate
 * {@link OrtExecution}.
 *
 * <p>A closed session creates no further executions. The model is released when the last execution is closed, on the
 * closing thread.
 */
public final class OrtSession implements AutoCloseable {
    private final OrtLibrary library;
    private final Arena arena;
    private final long handle;
    private final long deviceMemory;
    private final List<OrtTensorInfo> inputs;
    private final int requiredInputs;
    private final List<OrtTensorInfo> outputs;
    private final MemorySegment inputNames;
    private final MemorySegment outputNames;
    private final ReferenceCount references;

    private OrtSession(OrtLibrary library, Arena arena, long handle, long deviceMemory, String name)
            throws OrtException {
        this.library = library;
        this.arena = arena;
        this.handle = handle;
        this.deviceMemory = deviceMemory;
        OrtSessionReader reader = new OrtSessionReader(library, handle);
        List<OrtTensorInfo> required = reader.inputs();
        requiredInputs = required.size();
        inputs =
                Stream.concat(required.stream(), reader.initializers().stream()).toList();
        outputs = reader.outputs();
        inputNames = names(inputs);
        outputNames = names(outputs);
        references = new ReferenceCount(name, this::unload);
    }

    /** Loads a model for the CPU, as {@link #open(OrtLibrary, Path, OrtSessionOptions, OrtProviders)}. */
    public static OrtSession open(OrtLibrary library, Path model, OrtSessionOptions options) throws OrtException {
        return open(library, model, options, OrtProviders.CPU);
    }

    /**
     * Loads the model in the file {@code model}. Its external data is read from the same directory.
     *
     * @param providers the execution providers besides the CPU
     * @throws OrtException if ONNX Runtime cannot load it, or lacks a provider or a library that one needs
     * @throws IllegalStateException if the library was closed
     */
    public static OrtSession open(OrtLibrary library, Path model, OrtSessionOptions options, OrtProviders providers)
            throws OrtException {
        library.references().retain();
        Arena arena = Arena.ofAuto(); // as in an execution, its close would take long
        long handle = 0;
        long deviceMemory = 0;
        try {
            deviceMemory = providers.memory(library);
            handle = create(library, arena, model, options, providers);
            return new OrtSession(
                    library, arena, handle, deviceMemory, options.logging().id());
        } catch (OrtException | RuntimeException e) {
            release(library, arena, handle, deviceMemory);
            throw e;
        }
    }

    private static long create(
            OrtLibrary library, Arena arena, Path model, OrtSessionOptions options, OrtProviders providers)
            throws OrtException {
        OrtApi api = library.api();
        long nativeOptions = options.create(library, arena);
        try (Arena scratch = Arena.ofConfined()) {
            providers.append(library, nativeOptions);
            MemorySegment out = scratch.allocate(JAVA_LONG);
            long path = library.platform().writePath(scratch, model);
            api.call(OrtFunction.CreateSession, library.environment(), path, nativeOptions, out.address());
            return out.get(JAVA_LONG, 0);
        } finally {
            api.release(OrtFunction.ReleaseSessionOptions, nativeOptions);
        }
    }

    private MemorySegment names(List<OrtTensorInfo> infos) {
        MemorySegment pointers = arena.allocate(JAVA_LONG, Math.max(1, infos.size()));
        for (int i = 0; i < infos.size(); i++) {
            pointers.setAtIndex(JAVA_LONG, i, CStrings.write(arena, infos.get(i).name()));
        }
        return pointers;
    }

    /**
     * Returns the declarations of the model's inputs, in its order. The {@linkplain #requiredInputs() required inputs}
     * are first, then the inputs that have a value in the model and may be omitted.
     */
    public List<OrtTensorInfo> inputs() {
        return inputs;
    }

    /** Returns the declarations of inputs without a value in the model. They are in the model's order. */
    public List<OrtTensorInfo> requiredInputs() {
        return inputs.subList(0, requiredInputs);
    }

    /** Returns the declarations of the model's outputs, in its order. */
    public List<OrtTensorInfo> outputs() {
        return outputs;
    }

    /**
     * Creates a way to run the model, for one thread at a time.
     *
     * @param runConfig run config entries by ONNX Runtime's own keys, such as
     *     {@code memory.enable_memory_arena_shrinkage}
     * @throws IllegalStateException if the session was closed
     */
    public OrtExecution newExecution(Map<String, String> runConfig) throws OrtException {
        return new OrtExecution(this, runConfig);
    }

    OrtLibrary library() {
        return library;
    }

    /** Returns the reference count of the model. Executions retain it for their lifetime. */
    ReferenceCount references() {
        return references;
    }

    /** Returns the handle; valid between {@link ReferenceCount#retain()} and {@link ReferenceCount#release()} only. */
    long handle() {
        return handle;
    }

    /** Returns the handle that describes memory of the session's device; 0 for a session on the CPU. Valid likewise. */
    long deviceMemory() {
        return deviceMemory;
    }

    /** Returns the address of the name of input {@code index}; valid as long as the handle. */
    long inputName(int index) {
        return inputNames.getAtIndex(JAVA_LONG, index);
    }

    /** Returns the address of the name of output {@code index}; valid as long as the handle. */
    long outputName(int index) {
        return outputNames.getAtIndex(JAVA_LONG, index);
    }

    /** Prevents further executions, and releases the model when none is left. */
    @Override
    public void close() {
        references.close();
    }

    private void unload() {
        release(library, arena, handle, deviceMemory);
    }

    private static void release(OrtLibrary library, Arena arena, long handle, long deviceMemory) {
        try {
            if (handle != 0) {
                library.api().release(OrtFunction.ReleaseSession, handle);
            }
            if (deviceMemory != 0) {
                library.api().release(OrtFunction.ReleaseMemoryInfo, deviceMemory);
            }
        } finally { // until then the session may call the function of its log, which lives in the arena
            Reference.reachabilityFence(arena);
        }
        library.references().release();
    }
}
