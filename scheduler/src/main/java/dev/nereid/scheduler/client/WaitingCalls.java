package dev.nereid.scheduler.client;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.call.CallChain;
import dev.nereid.api.call.Hold;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Finds requests of models to each other that would wait for ever. Such a request waits for instances that are all held
 * by executions that wait, in turn, for such a request. Requests of clients are not known here. Safe for use by any
 * thread.
 *
 * <p><b>Search.</b> The search runs once for each request, when it begins to wait. That is enough: of the requests that
 * wait for each other, the last one to begin finds the others. Another execution may take an instance that was free
 * then, or that had an execution that waits for no request. The other execution ends, or a search runs for it when it
 * begins to wait.
 *
 * <p><b>Order.</b> A request is added before its search, so that of two at the same time at least one finds the other.
 * The search takes no lock, and its data may change meanwhile. If it finds nothing but waiting requests, it is repeated
 * under the lock, and the request is removed there: of two that find each other one goes on. The lock guards this
 * alone; under it only fields of instances are read.
 *
 * <p><b>Bounds.</b> A request is here from its submission to the release of its inputs. Requests that are no longer in
 * a queue are skipped: the requests for which they wait have their chain. The search reads the instances of the model,
 * and goes on to other models only where all of them are held by executions that wait.
 */
public final class WaitingCalls {
    /** The instances of a model version. Safe for use by any thread; takes no lock. */
    public interface Instances {
        /** Returns the executions that occupy each instance that takes requests. */
        List<InstanceUse> uses();

        /** Returns whether an execution that waits keeps later requests from their end, whichever instance is free. */
        boolean blocksAll(Hold hold);
    }

    /** The result of the search when a request begins to wait. */
    public enum Verdict {
        /** The request may wait. */
        WAITS,
        /** All instances wait in its own chain. */
        WAITS_FOR_ITSELF,
        /** All instances wait, some of them in other chains that wait for its own. */
        WAITS_FOR_OTHERS
    }

    /** A request of a model to another one. */
    public static final class Call {
        private final CallChain chain;
        private final Instances target;

        /** Returns {@code true} while the request is in a queue; {@code null} until it begins to wait. */
        private volatile @Nullable BooleanSupplier inQueue;

        /** Creates a request that does not wait yet, with the chain of models that wait for it. */
        public Call(CallChain chain, Instances target) {
            this.chain = chain;
            this.target = target;
        }

        private boolean isWaiting() {
            BooleanSupplier begun = inQueue;
            return begun != null && begun.getAsBoolean();
        }
    }

    /** A request for which an execution waits, and the kind of the execution's hold. */
    private record Wait(Call call, Hold.Kind kind) {}

    private final ReentrantLock lock = new ReentrantLock();

    /** The requests for which each execution waits. */
    private final ConcurrentMap<Object, Set<Wait>> waits = new ConcurrentHashMap<>();

    /**
     * Adds a request that begins to wait, unless it would wait for ever. A refused request leaves nothing here.
     *
     * @param inQueue whether it is in a queue; called by any thread
     * @return whether it waits, or why not
     */
    public Verdict begin(Call call, BooleanSupplier inQueue) {
        call.inQueue = inQueue;
        if (call.chain.holds().stream().anyMatch(call.target::blocksAll)) {
            return Verdict.WAITS_FOR_ITSELF;
        }
        add(call);
        VarHandle.fullFence(); // of two that begin together one finds the other
        if (!isBlocked(call)) {
            return Verdict.WAITS;
        }
        lock.lock();
        try {
            if (!isBlocked(call)) { // the other one is gone
                return Verdict.WAITS;
            }
            Verdict verdict = isHeldByItself(call) ? Verdict.WAITS_FOR_ITSELF : Verdict.WAITS_FOR_OTHERS;
            end(call);
            return verdict;
        } finally {
            lock.unlock();
        }
    }

    private void add(Call call) {
        for (Hold hold : call.chain.holds()) {
            if (hold.kind() != Hold.Kind.REQUEST) {
                waits.compute(hold.execution(), (_, before) -> {
                    Set<Wait> all = before == null ? ConcurrentHashMap.newKeySet(2) : before;
                    all.add(new Wait(call, hold.kind()));
                    return all;
                });
            }
        }
    }

    /** Removes a request. Later calls do nothing. */
    public void end(Call call) {
        for (Hold hold : call.chain.holds()) {
            if (hold.kind() != Hold.Kind.REQUEST) {
                waits.computeIfPresent(hold.execution(), (_, before) -> {
                    before.remove(new Wait(call, hold.kind()));
                    return before.isEmpty() ? null : before;
                });
            }
        }
    }

    /** Returns the number of executions that wait for requests here. */
    public int executions() {
        return waits.size();
    }

    /** Returns whether all instances of a request are held in its own chain. */
    private boolean isHeldByItself(Call call) {
        return call.target.uses().stream().allMatch(use -> isHeld(use, Set.of(call)::contains));
    }

    /** Returns whether no instance of a request's model gets free before it. */
    private boolean isBlocked(Call first) {
        List<InstanceUse> own = first.target.uses();
        if (!mayBeHeld(own)) {
            return false; // the usual case
        }
        Map<Call, List<InstanceUse>> reached = reach(first, own);
        Set<Call> blocked = new HashSet<>(reached.keySet());
        boolean changed = true;
        while (changed && blocked.contains(first)) {
            changed = blocked.removeIf(call -> !areHeld(requireNonNull(reached.get(call)), blocked::contains));
        }
        return blocked.contains(first);
    }

    /** Collects the requests that wait, and on which a request may depend. */
    private Map<Call, List<InstanceUse>> reach(Call first, List<InstanceUse> own) {
        Map<Call, List<InstanceUse>> reached = new HashMap<>();
        Deque<Call> left = new ArrayDeque<>();
        reached.put(first, own);
        left.add(first);
        while (!left.isEmpty()) {
            List<InstanceUse> uses = requireNonNull(reached.get(left.pop()));
            if (mayBeHeld(uses)) {
                for (InstanceUse use : uses) {
                    for (Object execution : executions(use)) {
                        for (Wait wait : waits.getOrDefault(execution, Set.of())) {
                            if (wait.call().isWaiting() && !reached.containsKey(wait.call())) {
                                reached.put(wait.call(), wait.call().target.uses());
                                left.add(wait.call());
                            }
                        }
                    }
                }
            }
        }
        return reached;
    }

    private static Collection<Object> executions(InstanceUse use) {
        Collection<Object> all = new ArrayList<>(use.deferred());
        if (use.running() != null) {
            all.add(use.running());
        }
        return all;
    }

    private boolean mayBeHeld(List<InstanceUse> uses) {
        return areHeld(uses, Call::isWaiting);
    }

    /** Returns whether each instance is held by executions that wait for one of some requests. */
    private boolean areHeld(List<InstanceUse> uses, Predicate<Call> calls) {
        for (InstanceUse use : uses) {
            if (!isHeld(use, calls)) {
                return false;
            }
        }
        return !uses.isEmpty();
    }

    private boolean isHeld(InstanceUse use, Predicate<Call> calls) {
        Object running = use.running();
        if (running != null && waits(running, Hold.Kind.THREAD, calls)) {
            return true;
        }
        if (running != null && !use.returns()) {
            return waits(running, Hold.Kind.EXECUTION, calls);
        }
        Set<Object> open = new HashSet<>(use.deferred());
        if (running != null) {
            open.add(running);
        }
        if (open.size() < use.maxDeferred()) {
            return false;
        }
        for (Object execution : open) {
            if (!waits(execution, Hold.Kind.EXECUTION, calls)) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether an execution waits for one of some requests with a hold of a kind, or a stronger one. */
    private boolean waits(Object execution, Hold.Kind atLeast, Predicate<Call> calls) {
        for (Wait wait : waits.getOrDefault(execution, Set.of())) {
            if (wait.kind().compareTo(atLeast) >= 0 && wait.call().isWaiting() && calls.test(wait.call())) {
                return true;
            }
        }
        return false;
    }

    /**
     * The executions that occupy an instance at a moment. They are known by identity.
     *
     * @param running the execution that has not returned; {@code null} for none
     * @param returns whether it is deferred, so that it returns soon unless its thread waits
     * @param deferred the deferred executions that have returned and not ended; of any thread
     * @param maxDeferred the number of deferred executions at which the instance begins no other one
     */
    public record InstanceUse(@Nullable Object running, boolean returns, Collection<?> deferred, int maxDeferred) {}
}
