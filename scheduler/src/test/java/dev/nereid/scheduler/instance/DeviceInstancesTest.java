package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests instances that share a thread. */
@Timeout(60)
final class DeviceInstancesTest {
    private static final Device GPU0 = new Device(Device.Kind.GPU, 0);
    private static final Device GPU1 = new Device(Device.Kind.GPU, 1);

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    private final List<String> events = new CopyOnWriteArrayList<>();

    @Test
    void sharesOneThreadOnEachDevice() {
        List<Instance> instances = new ArrayList<>();
        for (Device device : List.of(GPU0, GPU1, Device.CPU, GPU0, GPU1, Device.CPU)) {
            instances.add(slot("i" + instances.size(), device));
        }

        assertThat(names(DeviceInstances.of(instances, true))).containsExactly("gpu0", "gpu1", "i2", "i5");
        assertThat(DeviceInstances.of(instances, true))
                .extracting(DeviceInstances::size)
                .containsExactly(2, 2, 1, 1);
        assertThat(names(DeviceInstances.of(instances, false))).containsExactly("i0", "i1", "i2", "i3", "i4", "i5");
    }

    @Test
    void rotatesTheInstancesOfADevice() throws InterruptedException {
        Warmup.Sample sample = new Warmup.Sample("s", 1, () -> List.of(request("warm")));
        ModelPlan plan = new ModelPlan(model, BatchingPolicy.NONE)
                .with(new ExecutionTraits("blocking", AcceptedMemory.HOST, false, true))
                .with(List.of(sample));

        try (ModelScheduler scheduler = TriedScheduler.start(
                plan,
                List.of(slot("a", GPU0), slot("b", GPU0), slot("c", GPU0)),
                new SchedulerEnvironment(memory, System::nanoTime, timer))) {
            scheduler.awaitWarm();
            assertThat(scheduler.isReady()).isTrue();
            for (int i = 0; i < 4; i++) {
                RecordingObserver observer = new RecordingObserver();
                scheduler.submit(request("r" + i), observer);
                observer.await().close();
            }
        }

        String on = " on instance/m/1/gpu0";
        assertThat(events)
                .containsExactly(
                        "a warm" + on,
                        "b warm" + on,
                        "c warm" + on,
                        "a r0" + on,
                        "b r1" + on,
                        "c r2" + on,
                        "a r3" + on);
    }

    private Instance slot(String name, Device device) {
        FakeInstance instance = new FakeInstance(batch -> {
            events.add(name + " " + batch.requests().getFirst().id() + " on "
                    + Thread.currentThread().getName());
            FakeInstance.copy(batch);
        });
        return new Instance(name, device, instance);
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }

    private static List<String> names(List<DeviceInstances> groups) {
        return groups.stream().map(DeviceInstances::name).toList();
    }
}
