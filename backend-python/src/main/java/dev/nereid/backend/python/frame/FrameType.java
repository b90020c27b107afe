package dev.nereid.backend.python.frame;

/** Numbers of the protocol: types of frames, their flags, and kinds within them. */
public final class FrameType {
    // Frames of the server.
    public static final int OPEN = 1;
    public static final int COMPLETE = 2;
    public static final int INITIALIZE = 3;
    public static final int EXECUTE = 4;
    public static final int CHECK_READY = 5;
    public static final int FINALIZE = 6;
    public static final int CANCEL = 7;
    public static final int CREDIT = 8;
    public static final int RELEASE = 9;
    public static final int SEGMENT = 10;
    public static final int SEGMENT_REFUSED = 11;
    public static final int SEGMENT_REMOVE = 12;
    public static final int CALL_RESPONSE = 13;
    public static final int REPLY = 14;
    public static final int LOG_LEVELS = 15;

    // Frames of Python.
    public static final int HELLO = 64;
    public static final int DONE = 65;
    public static final int COMPLETED = 66;
    public static final int EXECUTED = 67;
    public static final int RESPONSE = 68;
    public static final int FAILED = 69;
    public static final int READY = 70;
    public static final int RELEASED = 71;
    public static final int SEGMENT_WANTED = 72;
    public static final int SEGMENT_RETURNED = 73;
    public static final int CALL = 74;
    public static final int CALL_CREDIT = 75;
    public static final int CALL_CANCEL = 76;
    public static final int CALL_DROP = 77;
    public static final int CONTROL = 78;
    public static final int METRIC = 79;
    public static final int LOG = 80;
    public static final int NOTICE = 81;

    /** The length of the header of each frame, in bytes. */
    public static final int HEADER_SIZE = 16;

    /** The length of the fields of a tensor before its shape, in bytes. */
    public static final int TENSOR_SIZE = 24;

    /** The largest number of entries of a frame: requests, credit, slots. */
    public static final int MAX_COUNT = 0xffff;

    /** The flag of the last response to a request, in RESPONSE and EXECUTED. */
    public static final int FINAL = 1;

    private FrameType() {}
}
