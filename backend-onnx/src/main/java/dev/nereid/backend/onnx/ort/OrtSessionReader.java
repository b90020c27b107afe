package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Reads the inputs and outputs of a session. Confined to the thread that loads the session. */
final class OrtSessionReader {
    private final OrtLibrary library;
    private final OrtApi api;
    private final long session;

    OrtSessionReader(OrtLibrary library, long session) {
        this.library = library;
        this.api = library.api();
        this.session = session;
    }

    List<OrtTensorInfo> inputs() throws OrtException {
        return infos(
                OrtFunction.SessionGetInputCount, OrtFunction.SessionGetInputName, OrtFunction.SessionGetInputTypeInfo);
    }

    /** Reads the inputs that have a value in the model. An input that is passed replaces this value. */
    List<OrtTensorInfo> initializers() throws OrtException {
        return infos(
                OrtFunction.SessionGetOverridableInitializerCount,
                OrtFunction.SessionGetOverridableInitializerName,
                OrtFunction.SessionGetOverridableInitializerTypeInfo);
    }

    List<OrtTensorInfo> outputs() throws OrtException {
        return infos(
                OrtFunction.SessionGetOutputCount,
                OrtFunction.SessionGetOutputName,
                OrtFunction.SessionGetOutputTypeInfo);
    }

    private List<OrtTensorInfo> infos(OrtFunction count, OrtFunction name, OrtFunction type) throws OrtException {
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(JAVA_LONG);
            api.call(count, session, out.address());
            long size = out.get(JAVA_LONG, 0);
            List<OrtTensorInfo> infos = new ArrayList<>();
            for (long i = 0; i < size; i++) {
                infos.add(info(name(name, i, out), type, i, scratch));
            }
            return List.copyOf(infos);
        }
    }

    private String name(OrtFunction function, long index, MemorySegment out) throws OrtException {
        api.call(function, session, index, library.allocator(), out.address());
        long text = out.get(JAVA_LONG, 0);
        try {
            return CStrings.read(text);
        } finally {
            api.call(OrtFunction.AllocatorFree, library.allocator(), text);
        }
    }

    private OrtTensorInfo info(String name, OrtFunction function, long index, Arena scratch) throws OrtException {
        MemorySegment out = scratch.allocate(JAVA_LONG);
        api.call(function, session, index, out.address());
        long type = out.get(JAVA_LONG, 0);
        try {
            api.call(OrtFunction.GetOnnxTypeFromTypeInfo, type, out.address());
            OrtTensorInfo.Kind kind = OrtTensorInfo.Kind.of(out.get(JAVA_INT, 0));
            if (kind != OrtTensorInfo.Kind.TENSOR) {
                return OrtTensorInfo.ofOther(name, kind);
            }
            api.call(OrtFunction.CastTypeInfoToTensorInfo, type, out.address());
            return tensor(name, out.get(JAVA_LONG, 0), scratch); // a part of the type, released with it
        } finally {
            api.release(OrtFunction.ReleaseTypeInfo, type);
        }
    }

    private OrtTensorInfo tensor(String name, long tensor, Arena scratch) throws OrtException {
        MemorySegment out = scratch.allocate(JAVA_LONG);
        api.call(OrtFunction.GetTensorElementType, tensor, out.address());
        OrtElementType type = OrtElementType.of(out.get(JAVA_INT, 0));
        api.call(OrtFunction.GetDimensionsCount, tensor, out.address());
        long rank = out.get(JAVA_LONG, 0);
        MemorySegment dims = scratch.allocate(JAVA_LONG, rank + 1);
        MemorySegment symbols = scratch.allocate(JAVA_LONG, rank + 1);
        api.call(OrtFunction.GetDimensions, tensor, dims.address(), rank);
        api.call(OrtFunction.GetSymbolicDimensions, tensor, symbols.address(), rank);
        List<Long> sizes = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (long i = 0; i < rank; i++) {
            sizes.add(dims.getAtIndex(JAVA_LONG, i));
            names.add(CStrings.read(symbols.getAtIndex(JAVA_LONG, i)));
        }
        boolean hasShape = api.test(OrtFunction.TensorTypeAndShape_HasShape, tensor);
        return new OrtTensorInfo(name, OrtTensorInfo.Kind.TENSOR, type, hasShape, sizes, names);
    }
}
