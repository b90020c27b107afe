package dev.nereid.server.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelRef;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.ModelInstanceGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class InstanceFactoryTest {
    private static final BackendTraits ONE_BY_ONE = BackendTraits.DEFAULT;
    private static final BackendTraits AT_ONCE = BackendTraits.DEFAULT.withParallelInstances();

    private final List<String> closed = new CopyOnWriteArrayList<>();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ResponseHolder holder = new ResponseHolders().add(new ModelRef("m", 1), "m", "p", Runnable::run);

    private boolean parallelInstances;

    @Test
    void makesInstancesAtOnceIfAllowed() {
        CyclicBarrier together = new CyclicBarrier(2);
        Model model = context -> {
            meet(together);
            return new NamedInstance(context.name());
        };

        List<BackendInstance> created = create(model, AT_ONCE, 2, "a", "b", "c", "d");

        assertThat(created).extracting(instance -> instance.plan().name()).containsExactly("a", "b", "c", "d");
        assertThat(closed).isEmpty();
    }

    @Test
    void createsInstancesInParallelIfTheServerAllowsIt() {
        parallelInstances = true;
        CyclicBarrier together = new CyclicBarrier(2);
        Model model = context -> {
            meet(together);
            return new NamedInstance(context.name());
        };

        assertThat(create(model, ONE_BY_ONE, 2, "a", "b")).hasSize(2);
    }

    @Test
    void makesInstancesOnTheCallersThreadOtherwise() {
        List<Thread> threads = new ArrayList<>();
        Model model = context -> {
            threads.add(Thread.currentThread());
            return new NamedInstance(context.name());
        };

        create(model, ONE_BY_ONE, 2, "a", "b");
        create(model, AT_ONCE, 1, "a", "b");

        assertThat(threads).hasSize(4).containsOnly(Thread.currentThread());
    }

    @Test
    void closesAllOthersInReverseOrderWhenSomeFail() {
        Model model = context -> {
            if (context.name().startsWith("bad")) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "no memory for " + context.name());
            }
            return new NamedInstance(context.name());
        };

        assertThatThrownBy(() -> create(model, AT_ONCE, 3, "a", "bad1", "b", "bad2", "c"))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessage("no memory for bad1");
        assertThat(closed).containsExactly("c", "b", "a");
    }

    @Test
    void closesAllOthersWhenTheVirtualMachineFails() {
        Model model = context -> {
            if (context.name().equals("bad")) {
                throw new OutOfMemoryError("no heap");
            }
            return new NamedInstance(context.name());
        };

        assertThatThrownBy(() -> create(model, AT_ONCE, 2, "a", "bad", "b"))
                .isInstanceOf(OutOfMemoryError.class)
                .hasMessage("no heap");
        assertThat(closed).containsExactly("b", "a");
    }

    private List<BackendInstance> create(Model model, BackendTraits traits, int processors, String... names) {
        List<InstancePlan> plans = new ArrayList<>();
        for (String name : names) {
            plans.add(new InstancePlan(name, Device.CPU, List.of(), false, ModelInstanceGroup.getDefaultInstance()));
        }
        try (Rollback rollback = new Rollback()) {
            InstanceOptions options = new InstanceOptions(
                    processors, List.of(), parallelInstances, HostPolicies.NONE, GpuLoadLimits.NONE);
            List<BackendInstance> created =
                    new InstanceFactory(plan -> create(model, plan, options), traits, options).create(plans, rollback);
            rollback.commit();
            return created;
        }
    }

    private BackendInstance create(Model model, InstancePlan plan, InstanceOptions options) {
        return BackendInstance.create(model, plan, memory, options, new FakeOwner(holder));
    }

    private static void meet(CyclicBarrier together) {
        try {
            together.await(20, TimeUnit.SECONDS);
        } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
            throw new IllegalStateException("instances are not created in parallel", e);
        }
    }

    private final class NamedInstance implements ModelInstance {
        private final String name;

        NamedInstance(String name) {
            this.name = name;
        }

        @Override
        public void execute(Batch batch) {
            throw new IllegalStateException("not reached");
        }

        @Override
        public void close() {
            closed.add(name);
        }
    }
}
