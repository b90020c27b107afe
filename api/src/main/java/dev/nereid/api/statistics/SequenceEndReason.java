package dev.nereid.api.statistics;

/** Reason for which a sequence ended, as statistics and metrics report it. */
public enum SequenceEndReason {
    /** Its last request was executed. */
    END,
    /** It had no request for too long. */
    IDLE,
    /** One of its requests was cancelled while it waited. */
    CANCELLED,
    /** Another sequence of the same id started. */
    REPLACED,
    /** It waited for a slot longer than the timeout of a request allows. */
    EXPIRED,
    /** The model is unloaded, or the server stops. */
    UNLOADED,
    /** Its instance failed beyond repair, or could not be started. */
    INSTANCE_LOST
}
