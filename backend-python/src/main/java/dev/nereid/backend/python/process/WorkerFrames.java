package dev.nereid.backend.python.process;

import dev.nereid.backend.python.frame.FrameReader;

/** Receiver of the frames and lines of a process. */
public interface WorkerFrames {
    /**
     * Receives a frame that answers none of {@link Worker#ask}. Called by one thread at a time: that of an execution, or that
     * of the process. It never blocks.
     *
     * @param frame the frame, valid during the call
     * @throws dev.nereid.backend.python.frame.FrameException if it is wrong, which ends the process
     */
    void onFrame(FrameReader frame);

    /**
     * Says whether frames are awaited that belong to no execution in progress, so that some thread has to receive at once.
     * Called by any thread.
     */
    boolean awaited();

    /** Receives a line of the output of the process, without its end, on the thread that reads it. */
    void onLine(String line);

    /**
     * Says that the process can be used no more, on its thread: it has closed its connection or was killed, and its end is
     * awaited next. No frame follows.
     */
    void onDisconnect();

    /** Says on the process's thread that it has ended, after {@link #onDisconnect} and before {@link Worker#ended}. */
    void onEnd(WorkerEnd end);
}
