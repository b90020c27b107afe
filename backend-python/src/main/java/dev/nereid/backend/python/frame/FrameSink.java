package dev.nereid.backend.python.frame;

/** Takes frames for the process of an instance. Safe for use by any thread. */
@FunctionalInterface
public interface FrameSink {
    /**
     * Sends a frame, or queues it. Never blocks. Frames are sent in the order of the calls. Does nothing once the
     * process has ended. The {@linkplain FrameWriter#end ended} frame of the writer is copied or sent before this
     * returns.
     */
    void send(FrameWriter frame);
}
