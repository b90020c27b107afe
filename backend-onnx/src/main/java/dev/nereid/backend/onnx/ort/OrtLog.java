package dev.nereid.backend.onnx.ort;

/** Receives the log messages of one session. Called on any thread, several at a time. */
@FunctionalInterface
public interface OrtLog {
    /** Severities of messages, in the order of the header's {@code OrtLoggingLevel}. */
    enum Severity {
        VERBOSE(0),
        INFO(1),
        WARNING(2),
        ERROR(3),
        FATAL(4);

        private final int number;

        Severity(int number) {
            this.number = number;
        }

        /** Returns the severity with ONNX Runtime's number {@code number}; {@link #FATAL} for one above this list. */
        static Severity of(int number) {
            return values()[Math.clamp(number, 0, FATAL.number)];
        }

        /** Returns ONNX Runtime's number for the severity. */
        int number() {
            return number;
        }
    }

    /**
     * Receives one message. Must be quick and must not call ONNX Runtime; exceptions are lost.
     *
     * @param severity at least the threshold of {@link OrtSessionOptions}
     * @param location the place in ONNX Runtime's source that wrote it
     */
    void write(Severity severity, String location, String message);
}
