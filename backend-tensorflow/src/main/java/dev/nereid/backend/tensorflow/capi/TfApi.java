package dev.nereid.backend.tensorflow.capi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.ReferenceCount;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Collections;

/**
 * TensorFlow's C functions, and the calls of them. Immutable; any thread may call.
 *
 * <p>Every parameter is passed as a 64-bit integer: the functions here take pointers, sizes, enums and
 * {@code TF_Output}. The two fields of the latter take two registers on every platform that TensorFlow Java is
 * published for. So one constant method handle per number of parameters serves all functions, the function's address
 * being an argument, and the compiler can inline the calls.
 *
 * <p>The caller ensures that the objects behind the arguments are alive, by {@link ReferenceCount}.
 */
final class TfApi {
    private static final MethodHandle VOID_1 = voidCall(1);
    private static final MethodHandle VOID_2 = voidCall(2);
    private static final MethodHandle VOID_4 = voidCall(4);
    private static final MethodHandle VOID_6 = voidCall(6);
    private static final MethodHandle VOID_12 = voidCall(12);
    private static final MethodHandle LONG_0 = longCall(0);
    private static final MethodHandle LONG_1 = longCall(1);
    private static final MethodHandle LONG_2 = longCall(2);
    private static final MethodHandle LONG_3 = longCall(3);
    private static final MethodHandle LONG_7 = longCall(7);
    private static final MethodHandle LONG_8 = longCall(8);
    private static final MethodHandle INT_1 = intCall(1);
    private static final MethodHandle INT_2 = intCall(2);
    private static final MethodHandle INT_4 = intCall(4);

    /** Calls functions that only read or set a few fields. The state of the thread does not change. */
    private static final MethodHandle SHORT_VOID_1 = voidCall(1, Linker.Option.critical(false));

    private static final MethodHandle SHORT_VOID_3 = voidCall(3, Linker.Option.critical(false));
    private static final MethodHandle SHORT_LONG_1 = longCall(1, Linker.Option.critical(false));
    private static final MethodHandle SHORT_LONG_2 = longCall(2, Linker.Option.critical(false));
    private static final MethodHandle SHORT_INT_1 = intCall(1, Linker.Option.critical(false));

    private final MemorySegment[] functions;

    private TfApi(MemorySegment[] functions) {
        this.functions = functions;
    }

    /** Looks the functions up; throws {@link IllegalStateException} if one is missing: no TensorFlow, or too old. */
    static TfApi of(SymbolLookup symbols) {
        TfFunction[] all = TfFunction.values();
        MemorySegment[] functions = new MemorySegment[all.length];
        for (TfFunction function : all) {
            functions[function.index()] = symbols.find(function.symbol())
                    .orElseThrow(() -> new IllegalStateException(
                            function.symbol() + ": missing (expected: the library of TensorFlow 2)"));
        }
        return new TfApi(functions);
    }

    void call(TfFunction function, long a) {
        try {
            VOID_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    void call(TfFunction function, long a, long b) {
        try {
            VOID_2.invokeExact(at(function), a, b);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    void call(TfFunction function, long a, long b, long c, long d) {
        try {
            VOID_4.invokeExact(at(function), a, b, c, d);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    void call(TfFunction function, long a, long b, long c, long d, long e, long f) {
        try {
            VOID_6.invokeExact(at(function), a, b, c, d, e, f);
        } catch (Throwable error) {
            throw unexpected(function, error);
        }
    }

    long create(TfFunction function) {
        try {
            return (long) LONG_0.invokeExact(at(function));
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    long pointer(TfFunction function, long a) {
        try {
            return (long) LONG_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    long pointer(TfFunction function, long a, long b) {
        try {
            return (long) LONG_2.invokeExact(at(function), a, b);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    long pointer(TfFunction function, long a, long b, long c) {
        try {
            return (long) LONG_3.invokeExact(at(function), a, b, c);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    /** Calls {@code TF_NewTensor}. */
    long newTensor(int type, long dims, int rank, long data, long byteSize, long deallocator) {
        try {
            return (long) LONG_7.invokeExact(
                    at(TfFunction.NewTensor), (long) type, dims, (long) rank, data, byteSize, deallocator, 0L);
        } catch (Throwable e) {
            throw unexpected(TfFunction.NewTensor, e);
        }
    }

    /** Calls {@code TF_LoadSessionFromSavedModel} without run options. */
    long loadSavedModel(
            long options, long directory, long tags, int tagCount, long graph, long metaGraph, long status) {
        try {
            return (long) LONG_8.invokeExact(
                    at(TfFunction.LoadSessionFromSavedModel),
                    options,
                    0L,
                    directory,
                    tags,
                    (long) tagCount,
                    graph,
                    metaGraph,
                    status);
        } catch (Throwable e) {
            throw unexpected(TfFunction.LoadSessionFromSavedModel, e);
        }
    }

    /** Calls {@code TF_SessionRun} without run options and metadata. */
    void run(
            long session,
            long inputs,
            long inputValues,
            int inputCount,
            long outputs,
            long outputValues,
            int outputCount,
            long targets,
            int targetCount,
            long status) {
        try {
            VOID_12.invokeExact(
                    at(TfFunction.SessionRun),
                    session,
                    0L,
                    inputs,
                    inputValues,
                    (long) inputCount,
                    outputs,
                    outputValues,
                    (long) outputCount,
                    targets,
                    (long) targetCount,
                    0L,
                    status);
        } catch (Throwable e) {
            throw unexpected(TfFunction.SessionRun, e);
        }
    }

    int number(TfFunction function, long a) {
        try {
            return (int) INT_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    int number(TfFunction function, long a, long b) {
        try {
            return (int) INT_2.invokeExact(at(function), a, b);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    int number(TfFunction function, long a, long b, long c, long d) {
        try {
            return (int) INT_4.invokeExact(at(function), a, b, c, d);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    int shortNumber(TfFunction function, long a) {
        try {
            return (int) SHORT_INT_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    long shortPointer(TfFunction function, long a) {
        try {
            return (long) SHORT_LONG_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    long shortPointer(TfFunction function, long a, long b) {
        try {
            return (long) SHORT_LONG_2.invokeExact(at(function), a, b);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    void shortCall(TfFunction function, long a) {
        try {
            SHORT_VOID_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    void shortCall(TfFunction function, long a, long b, long c) {
        try {
            SHORT_VOID_3.invokeExact(at(function), a, b, c);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    private MemorySegment at(TfFunction function) {
        return functions[function.index()];
    }

    private static IllegalStateException unexpected(TfFunction function, Throwable cause) {
        return new IllegalStateException("call of TensorFlow's " + function + " failed", cause);
    }

    private static MethodHandle voidCall(int parameters, Linker.Option... options) {
        return handle(FunctionDescriptor.ofVoid(longs(parameters)), options);
    }

    private static MethodHandle longCall(int parameters, Linker.Option... options) {
        return handle(FunctionDescriptor.of(JAVA_LONG, longs(parameters)), options);
    }

    private static MethodHandle intCall(int parameters, Linker.Option... options) {
        return handle(FunctionDescriptor.of(JAVA_INT, longs(parameters)), options);
    }

    private static MemoryLayout[] longs(int count) {
        return Collections.nCopies(count, JAVA_LONG).toArray(MemoryLayout[]::new);
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(FunctionDescriptor descriptor, Linker.Option... options) {
        return Linker.nativeLinker().downcallHandle(descriptor, options);
    }
}
