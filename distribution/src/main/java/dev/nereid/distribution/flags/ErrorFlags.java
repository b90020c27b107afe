package dev.nereid.distribution.flags;

/** The flag for the status of client errors. Written by the command line reader, then only read. */
final class ErrorFlags {
    private boolean clientErrorsAsBadRequest;

    /** Adds the flag. */
    void declare(Flags flags) {
        flags.add(
                        "--client-errors-as-bad-request",
                        FlagValue.TRUTH,
                        clientErrorsAsBadRequest,
                        v -> clientErrorsAsBadRequest = v)
                .help("Whether client errors that the reference server reports as 500 and INTERNAL, such as broken"
                        + " JSON, are reported as 400 and INVALID_ARGUMENT.");
    }

    /** Returns whether client errors have INVALID_ARGUMENT in place of INTERNAL. */
    boolean clientErrorsAsBadRequest() {
        return clientErrorsAsBadRequest;
    }
}
