package dev.nereid.api.statistics;

/** Reason for which an inference failed, as statistics and metrics report it. */
public enum FailureReason {
    /** It was not executed: the queue was full, its time was over, or the model took no more. */
    REJECTED,
    /** The client withdrew it, or the client's deadline passed. */
    CANCELED,
    /** The backend failed, or what it gave back does not fit the model. */
    BACKEND,
    /** Anything else. */
    OTHER
}
