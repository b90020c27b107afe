package dev.nereid.scheduler.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.call.CallChain;
import dev.nereid.api.call.Hold;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that requests are refused exactly where they would wait for ever, with random schedules of a simulated server. */
@Timeout(60)
final class WaitingCallsTest {
    private final WaitingCalls calls = new WaitingCalls();

    @Test
    void lastInstanceOfItsOwnChain() {
        SimulatedModel a = new SimulatedModel("a", 2, 1);
        Execution first = a.begin(Request.ofClient(a));
        Request self = new Request(a, first, Hold.Kind.THREAD);
        assertThat(begin(self)).isEqualTo(WaitingCalls.Verdict.WAITS);

        Execution second = a.begin(self);
        Request again = new Request(a, second, Hold.Kind.THREAD);

        assertThat(begin(again)).isEqualTo(WaitingCalls.Verdict.WAITS_FOR_ITSELF);
    }

    @Test
    void instancesOfChainsThatWaitForEachOther() {
        SimulatedModel a = new SimulatedModel("a", 1, 1);
        SimulatedModel b = new SimulatedModel("b", 1, 1);
        Request toB = new Request(b, a.begin(Request.ofClient(a)), Hold.Kind.THREAD);
        Request toA = new Request(a, b.begin(Request.ofClient(b)), Hold.Kind.THREAD);

        assertThat(begin(toB)).isEqualTo(WaitingCalls.Verdict.WAITS);
        assertThat(begin(toA)).isEqualTo(WaitingCalls.Verdict.WAITS_FOR_OTHERS);
        assertThat(calls.executions()).isOne();
        calls.end(toB.call);
        assertThat(calls.executions()).isZero();
        assertThat(begin(toA)).isEqualTo(WaitingCalls.Verdict.WAITS);
    }

    /** Its thread may wait for the request until it returns. */
    @Test
    void executionOfDetachedRequests() {
        SimulatedModel a = new SimulatedModel("a", 1, 1);
        Execution execution = a.begin(Request.ofClient(a));
        execution.isDetached = true;

        assertThat(begin(new Request(a, execution, execution.kind()))).isEqualTo(WaitingCalls.Verdict.WAITS_FOR_ITSELF);
        execution.returnDetached();
        assertThat(begin(new Request(a, execution, execution.kind()))).isEqualTo(WaitingCalls.Verdict.WAITS);
        assertThat(calls.executions()).isZero();
    }

    @Test
    void modelWhoseLaterResponsesWait() {
        SimulatedModel ordered = new SimulatedModel("ordered", 4, 1);
        ordered.blocksAll = true;
        Request self = new Request(ordered, ordered.begin(Request.ofClient(ordered)), Hold.Kind.EXECUTION);

        assertThat(begin(self)).isEqualTo(WaitingCalls.Verdict.WAITS_FOR_ITSELF);
        assertThat(calls.executions()).isZero();
    }

    /** Two requests that begin at the same time find each other, and one of them goes on. */
    @Test
    void oneOfTwoThatBeginTogether() throws Exception {
        CyclicBarrier start = new CyclicBarrier(2);
        AtomicReference<@Nullable Request> other = new AtomicReference<>();
        AtomicReference<WaitingCalls.@Nullable Verdict> verdict = new AtomicReference<>();
        int rounds = 2_000;
        Thread thread = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < rounds; i++) {
                await(start);
                verdict.set(begin(other.get()));
                await(start);
            }
        });
        for (int i = 0; i < rounds; i++) {
            SimulatedModel a = new SimulatedModel("a", 1, 1);
            SimulatedModel b = new SimulatedModel("b", 1, 1);
            Request toB = new Request(b, a.begin(Request.ofClient(a)), Hold.Kind.THREAD);
            other.set(new Request(a, b.begin(Request.ofClient(b)), Hold.Kind.THREAD));
            await(start);
            WaitingCalls.Verdict own = begin(toB);
            await(start);
            assertThat(List.of(own, verdict.get()))
                    .containsExactlyInAnyOrder(WaitingCalls.Verdict.WAITS, WaitingCalls.Verdict.WAITS_FOR_OTHERS);
            calls.end(toB.call);
            calls.end(other.get().call);
        }
        thread.join();
        assertThat(calls.executions()).isZero();
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    /** All requests end, and no request is refused that could. */
    @Tag("slow")
    @Test
    void randomSchedules() {
        int refused = 0;
        for (int seed = 0; seed < 4_000; seed++) {
            Simulation simulation = new Simulation(calls, new Random(seed));
            simulation.run("seed " + seed);
            refused += simulation.refused;
            assertThat(calls.executions()).as("seed %s", seed).isZero();
        }
        assertThat(refused).isGreaterThan(1_000);
    }

    private WaitingCalls.Verdict begin(Request request) {
        return calls.begin(request.call, request::isQueued);
    }

    /** A model with instances and a queue. */
    private static final class SimulatedModel implements WaitingCalls.Instances {
        final String name;
        final int maxDeferred;
        final List<Instance> instances = new ArrayList<>();
        final Deque<Request> queue = new ArrayDeque<>();
        boolean blocksAll;

        SimulatedModel(String name, int count, int maxDeferred) {
            this.name = name;
            this.maxDeferred = maxDeferred;
            for (int i = 0; i < count; i++) {
                instances.add(new Instance());
            }
        }

        /** Executes a request on the first free instance. */
        Execution begin(Request request) {
            Instance instance = instances.stream()
                    .filter(one -> one.isFree(maxDeferred))
                    .findFirst()
                    .orElseThrow();
            request.isQueued = false;
            Execution execution = new Execution(request, instance);
            request.execution = execution;
            instance.running = execution;
            return execution;
        }

        boolean hasFree() {
            return instances.stream().anyMatch(one -> one.isFree(maxDeferred));
        }

        @Override
        public List<WaitingCalls.InstanceUse> uses() {
            return instances.stream()
                    .map(one -> new WaitingCalls.InstanceUse(
                            one.running, one.running != null && one.running.isDeferred, one.deferred, maxDeferred))
                    .toList();
        }

        @Override
        public boolean blocksAll(Hold hold) {
            return blocksAll;
        }
    }

    private static final class Instance {
        @Nullable
        Execution running;

        final Set<Execution> deferred = new LinkedHashSet<>();

        boolean isFree(int maxDeferred) {
            return running == null && deferred.size() < maxDeferred;
        }
    }

    private static final class Execution {
        final Request request;
        final Instance instance;
        final List<Request> outstanding = new ArrayList<>();

        /** The request for which the thread waits. */
        @Nullable
        Request awaited;

        boolean isDeferred;

        /** {@code true} if its requests are detached, so that it may return before they end. */
        boolean isDetached;

        boolean hasReturned;

        /** How many requests it may still send. */
        int mayCall;

        Execution(Request request, Instance instance) {
            this.request = request;
            mayCall = Math.max(0, 3 - request.chain.models().size());
            this.instance = instance;
        }

        /** Returns what it holds for a request for which its thread does not wait, as far as the server knows. */
        Hold.Kind kind() {
            return isDetached && hasReturned ? Hold.Kind.REQUEST : Hold.Kind.EXECUTION;
        }

        void returnDetached() {
            hasReturned = true;
            instance.running = null;
        }
    }

    private static final class Request {
        final SimulatedModel model;
        final CallChain chain;
        final WaitingCalls.Call call;
        final @Nullable Execution cause;

        @Nullable
        Execution execution;

        volatile boolean isQueued = true;

        private Request(SimulatedModel model, CallChain chain, @Nullable Execution cause) {
            this.model = model;
            this.chain = chain;
            this.cause = cause;
            call = new WaitingCalls.Call(chain, model);
        }

        Request(SimulatedModel model, Execution cause, Hold.Kind kind) {
            this(model, cause.request.chain.with(new Hold(cause, kind)).with(cause.request.model.name), cause);
        }

        static Request ofClient(SimulatedModel model) {
            return new Request(model, CallChain.NONE, null);
        }

        boolean isQueued() {
            return isQueued;
        }
    }

    /** A server with random steps. */
    private static final class Simulation {
        private final WaitingCalls calls;
        private final Random random;
        private final List<SimulatedModel> models = new ArrayList<>();
        private final Set<Execution> executions = new LinkedHashSet<>();
        private int clients;
        private int open;
        int refused;

        Simulation(WaitingCalls calls, Random random) {
            this.calls = calls;
            this.random = random;
            clients = 4 + random.nextInt(12);
            int count = 1 + random.nextInt(4);
            for (int i = 0; i < count; i++) {
                models.add(new SimulatedModel("m" + i, 1 + random.nextInt(3), 1 + random.nextInt(3)));
            }
        }

        void run(String as) {
            List<Runnable> steps = steps();
            while (!steps.isEmpty()) {
                steps.get(random.nextInt(steps.size())).run();
                steps = steps();
            }
            assertThat(open).as("%s: requests that wait for ever", as).isZero();
        }

        private List<Runnable> steps() {
            List<Runnable> steps = new ArrayList<>();
            if (clients > 0) {
                steps.add(() -> {
                    clients--;
                    open++;
                    SimulatedModel model = models.get(random.nextInt(models.size()));
                    model.queue.add(Request.ofClient(model));
                });
            }
            for (SimulatedModel model : models) {
                if (!model.queue.isEmpty() && model.hasFree()) {
                    steps.add(() -> executions.add(model.begin(model.queue.remove())));
                }
            }
            for (Execution execution : executions) {
                boolean isRunning = execution.equals(execution.instance.running);
                if (isRunning && execution.awaited == null) {
                    if (execution.isDeferred) {
                        steps.add(() -> {
                            execution.instance.running = null;
                            execution.instance.deferred.add(execution);
                        });
                    } else if (execution.isDetached) {
                        steps.add(execution::returnDetached);
                    } else if (execution.outstanding.isEmpty()) {
                        steps.add(() -> execution.isDeferred = true);
                        steps.add(() -> execution.isDetached = true);
                    }
                    if (execution.mayCall > 0) {
                        steps.add(() -> call(execution, Hold.Kind.THREAD));
                    }
                }
                if (execution.awaited == null && execution.mayCall > 0) {
                    steps.add(() -> call(execution, execution.kind()));
                }
                if (execution.outstanding.isEmpty() && !(isRunning && execution.isDeferred)) {
                    steps.add(() -> end(execution));
                }
            }
            return steps;
        }

        private void call(Execution execution, Hold.Kind kind) {
            execution.mayCall--;
            SimulatedModel model = models.get(random.nextInt(models.size()));
            Request request = new Request(model, execution, kind);
            execution.outstanding.add(request);
            execution.awaited = kind == Hold.Kind.THREAD ? request : null;
            boolean isServed = served().contains(request);
            WaitingCalls.Verdict verdict = calls.begin(request.call, request::isQueued);
            assertThat(verdict == WaitingCalls.Verdict.WAITS)
                    .as("%s of a request that %s", verdict, isServed ? "is served" : "waits for ever")
                    .isEqualTo(isServed);
            if (isServed) {
                open++;
                model.queue.add(request);
            } else {
                refused++;
                execution.outstanding.remove(request);
                execution.awaited = null;
            }
        }

        private void end(Execution execution) {
            executions.remove(execution);
            execution.instance.deferred.remove(execution);
            if (execution.equals(execution.instance.running)) {
                execution.instance.running = null;
            }
            Request request = execution.request;
            open--;
            Execution cause = request.cause;
            if (cause != null) {
                calls.end(request.call);
                cause.outstanding.remove(request);
                if (request.equals(cause.awaited)) {
                    cause.awaited = null;
                }
            }
        }

        /** Returns the requests of executions that can be served if no execution begins another one. */
        private Set<Request> served() {
            Set<Request> served = new HashSet<>();
            Set<Execution> ends = new HashSet<>();
            boolean changed = true;
            while (changed) {
                changed = false;
                for (Execution execution : executions) {
                    changed |= served.containsAll(execution.outstanding) && ends.add(execution);
                    for (Request request : execution.outstanding) {
                        changed |= isServed(request, served, ends) && served.add(request);
                    }
                }
            }
            return served;
        }

        private static boolean isServed(Request request, Set<Request> served, Set<Execution> ends) {
            Execution execution = request.execution;
            if (execution != null) {
                return ends.contains(execution);
            }
            return request.model.instances.stream().anyMatch(one -> {
                Execution running = one.running;
                if (running != null && !running.isDeferred) {
                    return ends.contains(running);
                }
                if (running != null && running.awaited != null && !served.contains(running.awaited)) {
                    return false;
                }
                Set<Execution> all = new HashSet<>(one.deferred);
                if (running != null) {
                    all.add(running);
                }
                return all.size() < request.model.maxDeferred || all.stream().anyMatch(ends::contains);
            });
        }
    }
}
