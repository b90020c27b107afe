package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** The native callback for log messages of a session. Immutable; called on any thread. */
final class OrtLogCallback {
    // OrtLoggingFunction: param, severity, category, logid, code_location, message
    private static final FunctionDescriptor SIGNATURE =
            FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private static final MethodType TYPE = SIGNATURE.toMethodType();

    private final OrtLog log;

    private OrtLogCallback(OrtLog log) {
        this.log = log;
    }

    /** Returns the address of a C function that writes to {@code log}. The function lives as long as {@code arena}. */
    @SuppressWarnings("restricted")
    static long create(OrtLog log, Arena arena) {
        try {
            MethodHandle write = MethodHandles.lookup().findVirtual(OrtLogCallback.class, "write", TYPE);
            return Linker.nativeLinker()
                    .upcallStub(write.bindTo(new OrtLogCallback(log)), SIGNATURE, arena)
                    .address();
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("OrtLogCallback.write is missing", e);
        }
    }

    @SuppressWarnings({"unused", "CatchingUnchecked"}) // called from native code, where an exception ends the process
    private void write(long param, int severity, long category, long logId, long location, long message) {
        try {
            log.write(OrtLog.Severity.of(severity), CStrings.read(location), CStrings.read(message));
        } catch (Throwable e) {
            // The error cannot be reported: the caller is ONNX Runtime, and the log itself failed.
        }
    }
}
