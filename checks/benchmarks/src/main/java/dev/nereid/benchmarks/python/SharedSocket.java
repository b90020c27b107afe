package dev.nereid.benchmarks.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.posix.SocketCalls;
import dev.nereid.benchmarks.load.ThreadLoad;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A connection on which several threads exchange messages of one size. It has no separate thread: one waiting thread
 * receives for all, wakes the threads with complete bytes, and leaves the turn to another one when its own bytes are
 * complete.
 */
final class SharedSocket {
    private static final int BUFFER = 1 << 16;

    private final int socket;
    private final MemorySegment bytes;
    private final ReentrantLock lock = new ReentrantLock();
    private final MemorySegment sendState = SocketCalls.newState(Arena.ofAuto());

    /** Used by the thread that has the turn. */
    private final MemorySegment receiveState = SocketCalls.newState(Arena.ofAuto());

    /** Used by the thread that has the turn. */
    private final MemorySegment buffer = Arena.ofAuto().allocate(BUFFER);

    /** In the order of their bytes. */
    @GuardedBy("lock")
    private final ArrayDeque<Caller> waiting = new ArrayDeque<>();

    @GuardedBy("lock")
    private long sent;

    @GuardedBy("lock")
    private long received;

    @GuardedBy("lock")
    private boolean receiving;

    private volatile boolean gone;

    /** Shares a connection, on which {@code bytes} are each message. */
    SharedSocket(int socket, MemorySegment bytes) {
        this.socket = socket;
        this.bytes = bytes;
    }

    ThreadLoad.Caller newCaller() {
        return new Caller();
    }

    private final class Caller implements ThreadLoad.Caller {
        private Thread thread = Thread.currentThread();

        /** The end of its bytes among all that were sent. Guarded by the lock. */
        private long end;

        private volatile boolean done;

        /** Written under the lock. */
        private volatile boolean hasTurn;

        @Override
        public void call() throws IOException {
            thread = Thread.currentThread();
            done = false;
            send(this);
            while (!done) {
                if (hasTurn) {
                    received(SocketCalls.receive(receiveState, socket, buffer));
                } else {
                    LockSupport.park(this);
                }
            }
            if (hasTurn) {
                leaveTurn();
            }
            if (gone) {
                throw new IOException("echo: the program has ended");
            }
        }
    }

    /** Sends, and gives the caller the turn to receive if nobody has it. */
    private void send(Caller caller) throws IOException {
        lock.lock();
        try {
            if (gone || SocketCalls.send(sendState, socket, bytes) != bytes.byteSize()) {
                throw new IOException("echo: not sent");
            }
            sent += bytes.byteSize();
            caller.end = sent;
            waiting.add(caller);
            caller.hasTurn = !receiving;
            receiving = true;
        } finally {
            lock.unlock();
        }
    }

    private void received(long count) {
        lock.lock();
        try {
            gone = count == SocketCalls.GONE;
            received += Math.max(0, count);
            while (!waiting.isEmpty() && (gone || waiting.element().end <= received)) {
                Caller served = waiting.remove();
                served.done = true;
                if (!served.hasTurn) {
                    LockSupport.unpark(served.thread);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private void leaveTurn() {
        lock.lock();
        try {
            Caller next = waiting.peek();
            receiving = next != null;
            if (next != null) {
                next.hasTurn = true;
                LockSupport.unpark(next.thread);
            }
        } finally {
            lock.unlock();
        }
    }
}
