package dev.nereid.grpc;

import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.EventExecutorGroup;
import io.netty.util.concurrent.ImmediateEventExecutor;
import java.util.ArrayList;
import java.util.List;

/** The event loops that connections run on. Immutable. */
final class EventLoops {
    private final List<EventExecutor> loops = new ArrayList<>();

    EventLoops(EventExecutorGroup group) {
        group.forEach(loops::add);
    }

    /** Returns the event loop that calls this method, or, for any other thread, one that runs tasks at once. */
    EventExecutor current() {
        for (EventExecutor loop : loops) {
            if (loop.inEventLoop()) {
                return loop;
            }
        }
        return ImmediateEventExecutor.INSTANCE;
    }
}
