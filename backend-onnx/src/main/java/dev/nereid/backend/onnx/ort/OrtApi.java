package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import dev.nereid.backend.natives.ReferenceCount;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.Collections;

/**
 * ONNX Runtime's table of C functions, and the calls through it. Immutable; any thread may call.
 *
 * <p>Every parameter is passed as a 64-bit integer: the functions here take pointers, sizes and enums only, and an
 * enum's callee reads the lower half of its register or 8-byte stack slot on every platform in {@link NativePlatform}.
 * So one constant method handle per number of parameters serves all functions, the function's address being an
 * argument, and the compiler can inline the calls although two versions of the library may be loaded.
 *
 * <p>The caller ensures that the objects behind the arguments are alive, by {@link ReferenceCount}.
 */
final class OrtApi {
    /** The version of the requested API table; the supported releases of ONNX Runtime follow from it. */
    static final int API_VERSION = 28;

    static final String RELEASES = "1." + API_VERSION + ".";

    private static final MethodHandle CALL_1 = statusCall(1);
    private static final MethodHandle CALL_2 = statusCall(2);
    private static final MethodHandle CALL_3 = statusCall(3);
    private static final MethodHandle CALL_4 = statusCall(4);
    private static final MethodHandle CALL_5 = statusCall(5);
    private static final MethodHandle CALL_8 = statusCall(8);
    /** Calls functions that only read or set a few fields; must be short, since the thread's state does not change. */
    private static final MethodHandle SHORT_CALL_2 = statusCall(2, Linker.Option.critical(false));

    private static final MethodHandle SHORT_CALL_4 = statusCall(4, Linker.Option.critical(false));
    private static final MethodHandle SHORT_CALL_7 = statusCall(7, Linker.Option.critical(false));

    private static final MethodHandle RELEASE = handle(FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle GET_INT = handle(FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    private static final MethodHandle GET_POINTER = handle(FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle GET_BASE = handle(FunctionDescriptor.of(ADDRESS));

    private final MemorySegment[] functions;
    private final String version;

    private OrtApi(MemorySegment[] functions, String version) {
        this.functions = functions;
        this.version = version;
    }

    /** Reads the table; throws {@link IllegalStateException} if the library is no supported release of ONNX Runtime. */
    static OrtApi of(SymbolLookup symbols) {
        MemorySegment getBase = symbols.find("OrtGetApiBase")
                .orElseThrow(
                        () -> new IllegalStateException("OrtGetApiBase: missing (expected: ONNX Runtime's library)"));
        MemorySegment base = pointers(callBase(getBase), 2);
        // struct OrtApiBase: GetApi(version), GetVersionString()
        String version = CStrings.read(callPointer(base.get(ADDRESS, ADDRESS.byteSize()), 0));
        long table = callPointer(base.get(ADDRESS, 0), API_VERSION);
        if (!version.startsWith(RELEASES) || table == 0) {
            throw new IllegalStateException("ONNX Runtime: " + version + " (expected: " + RELEASES + "x)");
        }
        return new OrtApi(functions(MemorySegment.ofAddress(table)), version);
    }

    /** Returns the addresses of the functions in {@link OrtFunction}, each at its own index, with none between them. */
    private static MemorySegment[] functions(MemorySegment table) {
        OrtFunction[] all = OrtFunction.values();
        int end = 1 + Arrays.stream(all).mapToInt(OrtFunction::index).max().orElseThrow();
        MemorySegment slots = pointers(table, end);
        MemorySegment[] functions = new MemorySegment[end];
        Arrays.fill(functions, MemorySegment.NULL);
        for (OrtFunction function : all) {
            functions[function.index()] = slots.getAtIndex(ADDRESS, function.index());
        }
        return functions;
    }

    /** Returns the release of the loaded library, such as {@code 1.28.0}. */
    String version() {
        return version;
    }

    void call(OrtFunction function, long a) throws OrtException {
        long status;
        try {
            status = (long) CALL_1.invokeExact(at(function), a);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    void call(OrtFunction function, long a, long b) throws OrtException {
        long status;
        try {
            status = (long) CALL_2.invokeExact(at(function), a, b);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    void call(OrtFunction function, long a, long b, long c) throws OrtException {
        long status;
        try {
            status = (long) CALL_3.invokeExact(at(function), a, b, c);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    void call(OrtFunction function, long a, long b, long c, long d) throws OrtException {
        long status;
        try {
            status = (long) CALL_4.invokeExact(at(function), a, b, c, d);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    void call(OrtFunction function, long a, long b, long c, long d, long e) throws OrtException {
        long status;
        try {
            status = (long) CALL_5.invokeExact(at(function), a, b, c, d, e);
        } catch (Throwable t) {
            throw unexpected(function, t);
        }
        check(status);
    }

    /** Calls {@code Run}: session, options, input names, inputs, their number, output names, their number, outputs. */
    void run(long session, long options, long inNames, long in, long inCount, long outNames, long outCount, long out)
            throws OrtException {
        long status;
        try {
            status = (long) CALL_8.invokeExact(
                    at(OrtFunction.Run), session, options, inNames, in, inCount, outNames, outCount, out);
        } catch (Throwable e) {
            throw unexpected(OrtFunction.Run, e);
        }
        check(status);
    }

    /** Calls a function that is over in well under a microsecond. */
    void shortCall(OrtFunction function, long a, long b) throws OrtException {
        long status;
        try {
            status = (long) SHORT_CALL_2.invokeExact(at(function), a, b);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    /** Calls a function that is over in well under a microsecond. */
    void shortCall(OrtFunction function, long a, long b, long c, long d) throws OrtException {
        long status;
        try {
            status = (long) SHORT_CALL_4.invokeExact(at(function), a, b, c, d);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    /** Calls {@code CreateTensorWithDataAsOrtValue}: memory info, data, bytes, shape, rank, element type, result. */
    void wrapTensor(long info, long data, long bytes, long shape, long rank, long type, long result)
            throws OrtException {
        OrtFunction function = OrtFunction.CreateTensorWithDataAsOrtValue;
        long status;
        try {
            status = (long) SHORT_CALL_7.invokeExact(at(function), info, data, bytes, shape, rank, type, result);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
        check(status);
    }

    /** Calls one of the {@code Release…} functions, none of which can fail. */
    void release(OrtFunction function, long handle) {
        try {
            RELEASE.invokeExact(at(function), handle);
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    /** Calls a function that returns a truth value rather than a status. */
    boolean test(OrtFunction function, long handle) {
        try {
            return ((int) GET_INT.invokeExact(at(function), handle) & 0xff) != 0; // C's bool is the lowest byte
        } catch (Throwable e) {
            throw unexpected(function, e);
        }
    }

    private void check(long status) throws OrtException {
        if (status != 0) {
            throw failure(status);
        }
    }

    /** Converts a status to an exception, and releases it. */
    private OrtException failure(long status) {
        try {
            int code = (int) GET_INT.invokeExact(at(OrtFunction.GetErrorCode), status);
            String message = CStrings.read(callPointer(at(OrtFunction.GetErrorMessage), status));
            return new OrtException(OrtErrorCode.of(code), message);
        } catch (Throwable e) {
            throw unexpected(OrtFunction.GetErrorCode, e);
        } finally {
            release(OrtFunction.ReleaseStatus, status);
        }
    }

    private MemorySegment at(OrtFunction function) {
        return functions[function.index()];
    }

    private static MemorySegment callBase(MemorySegment getBase) {
        try {
            return (MemorySegment) GET_BASE.invokeExact(getBase);
        } catch (Throwable e) {
            throw new IllegalStateException("OrtGetApiBase failed", e);
        }
    }

    private static long callPointer(MemorySegment function, long argument) {
        try {
            return (long) GET_POINTER.invokeExact(function, argument);
        } catch (Throwable e) {
            throw new IllegalStateException("call of ONNX Runtime failed", e);
        }
    }

    private static IllegalStateException unexpected(OrtFunction function, Throwable cause) {
        return new IllegalStateException("call of ONNX Runtime's " + function + " failed", cause);
    }

    private static MethodHandle statusCall(int parameters, Linker.Option... options) {
        MemoryLayout[] longs = Collections.nCopies(parameters, JAVA_LONG).toArray(MemoryLayout[]::new);
        return handle(FunctionDescriptor.of(JAVA_LONG, longs), options);
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(FunctionDescriptor descriptor, Linker.Option... options) {
        return Linker.nativeLinker().downcallHandle(descriptor, options);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment pointers(MemorySegment start, long count) {
        return start.reinterpret(count * ADDRESS.byteSize());
    }
}
