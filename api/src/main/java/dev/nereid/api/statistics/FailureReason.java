package dev.nereid.api.statistics;

/** Reason for which an inference failed, as statistics and metrics report it. */
public enum FailureReason {
    /** Not executed: the queue was full, the timeout passed, or the model stops. */
    REJECTED,
    /** The client cancelled the request, or its deadline passed. */
    CANCELED,
    /** The backend failed, or its response does not fit the model. */
    BACKEND,
    /** Another error. */
    OTHER
}
