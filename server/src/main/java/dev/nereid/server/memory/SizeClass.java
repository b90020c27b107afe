package dev.nereid.server.memory;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The buffers of one size. Guarded by its lock, under which nothing is allocated, closed or called.
 *
 * <p>Invariant: {@code roomy} is the head of a list of exactly those slabs that have a free piece. A slab leaves the
 * list with its last free piece and returns with the first one given back.
 */
final class SizeClass {
    /** Small pieces share slabs of about this size, in bytes; larger ones have a slab each. */
    private static final long SLAB_BYTES = 256L << 10;

    /**
     * How often to try before sleeping. The lock is held for some ten nanoseconds, a sleep costs a thousand times as
     * much.
     */
    private static final int SPINS = 100;

    private final long pieceSize;
    private final int piecesPerSlab;
    private final IdleMemory idle;
    private final AtomicLong inUse;
    private final ReentrantLock lock = new ReentrantLock();

    private @Nullable Slab roomy; // guarded by lock

    SizeClass(long pieceSize, IdleMemory idle, AtomicLong inUse) {
        this.pieceSize = pieceSize;
        this.piecesPerSlab = Math.clamp(SLAB_BYTES / pieceSize, 1, Slab.MOST_PIECES);
        this.idle = idle;
        this.inUse = inUse;
    }

    /** Hands out a piece; its bytes were added to the total in use by the caller. */
    PooledBuffer take(long byteSize) {
        lockSoon();
        try {
            Slab slab = roomy;
            if (slab != null) {
                int piece = slab.take();
                if (slab.isFull()) {
                    unlink(slab);
                }
                idle.add(-pieceSize);
                return new PooledBuffer(this, slab, piece, slab.piece(piece, byteSize));
            }
        } finally {
            lock.unlock();
        }
        return takeOfNewSlab(byteSize);
    }

    /** Takes a piece back. The slab is closed if it is idle as a whole and the pool has enough without it. */
    void giveBack(PooledBuffer buffer, Slab slab, int piece) {
        boolean surplus;
        lockSoon();
        try {
            buffer.markClosed();
            boolean wasFull = slab.isFull();
            slab.giveBack(piece);
            if (wasFull) {
                link(slab);
            }
            idle.add(pieceSize);
            surplus = slab.isIdle() && idle.isTooMuch();
            if (surplus) {
                unlink(slab);
                idle.add(-slab.byteSize());
            }
        } finally {
            lock.unlock();
        }
        inUse.addAndGet(-buffer.byteSize());
        if (surplus) {
            slab.close();
        }
    }

    /** Closes every slab of which no piece is handed out. */
    void closeIdle() {
        List<Slab> unused = new ArrayList<>();
        lockSoon();
        try {
            for (Slab slab = roomy; slab != null; slab = slab.next) {
                if (slab.isIdle()) {
                    unused.add(slab);
                }
            }
            for (Slab slab : unused) {
                unlink(slab);
                idle.add(-slab.byteSize());
            }
        } finally {
            lock.unlock();
        }
        unused.forEach(Slab::close);
    }

    private PooledBuffer takeOfNewSlab(long byteSize) {
        Slab slab = Slab.create(pieceSize, piecesPerSlab);
        int piece = slab.take();
        PooledBuffer buffer = new PooledBuffer(this, slab, piece, slab.piece(piece, byteSize));
        idle.add(slab.byteSize() - pieceSize);
        if (piecesPerSlab > 1) {
            lockSoon();
            try {
                link(slab);
            } finally {
                lock.unlock();
            }
        }
        return buffer;
    }

    private void lockSoon() {
        for (int i = 0; i < SPINS; i++) {
            if (lock.tryLock()) {
                return;
            }
            Thread.onSpinWait();
        }
        lock.lock();
    }

    private void link(Slab slab) {
        Slab head = roomy;
        slab.next = head;
        if (head != null) {
            head.previous = slab;
        }
        roomy = slab;
    }

    private void unlink(Slab slab) {
        Slab before = slab.previous;
        Slab after = slab.next;
        if (before == null) {
            roomy = after;
        } else {
            before.next = after;
        }
        if (after != null) {
            after.previous = before;
        }
        slab.previous = null;
        slab.next = null;
    }
}
