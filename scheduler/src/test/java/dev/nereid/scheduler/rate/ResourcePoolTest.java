package dev.nereid.scheduler.rate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** Tests amounts of resources, and the instances for which they suffice. */
final class ResourcePoolTest {
    private static final Device GPU_1 = new Device(Device.Kind.GPU, 1);
    private static final Device GPU_0 = new Device(Device.Kind.GPU, 0);

    private final ResourcePool pool = new ResourcePool(List.of());

    private static ResourcePool.Need on(Device device, RateProfile.Resource... resources) {
        return ResourcePool.Need.of(device, new RateProfile(1, List.of(resources)));
    }

    private static RateProfile.Resource some(String name, int count) {
        return new RateProfile.Resource(name, false, count);
    }

    private static RateProfile.Resource global(String name, int count) {
        return new RateProfile.Resource(name, true, count);
    }

    private static RateLimiter.ResourceLimit limit(String name, int count) {
        return new RateLimiter.ResourceLimit(name, count, OptionalInt.empty());
    }

    private static RateLimiter.ResourceLimit limit(String name, int count, int device) {
        return new RateLimiter.ResourceLimit(name, count, OptionalInt.of(device));
    }

    @Test
    void isAsLargeAsTheLargestNeed() {
        pool.add(on(Device.CPU, some("R", 3)));
        pool.add(on(Device.CPU, some("R", 7), some("S", 1)));
        pool.add(on(Device.CPU, some("R", 5)));

        assertThat(pool.capacity(new ResourcePool.Need.Key("R", 0))).isEqualTo(7);
        assertThat(pool.capacity(new ResourcePool.Need.Key("S", 0))).isEqualTo(1);
        assertThat(pool.capacity(new ResourcePool.Need.Key("T", 0))).isZero();
    }

    @Test
    void shrinksWhenTheLargestNeedIsGone() {
        ResourcePool.Need largest = on(Device.CPU, some("R", 7));
        ResourcePool.Need small = on(Device.CPU, some("R", 2));
        pool.add(largest);
        pool.add(small);
        pool.take(small);
        pool.take(small);

        pool.remove(largest);

        assertThat(pool.capacity(new ResourcePool.Need.Key("R", 0))).isEqualTo(2);
        assertThat(pool.fits(small)).as("more is taken than there is").isFalse();
        pool.release(small);
        assertThat(pool.fits(small)).isFalse();
        pool.release(small);
        assertThat(pool.fits(small)).isTrue();
    }

    @Test
    void keepsDevicesApart() {
        ResourcePool.Need first = on(GPU_0, some("R", 2));
        ResourcePool.Need second = on(GPU_1, some("R", 2));
        pool.add(first);
        pool.add(second);

        pool.take(first);

        assertThat(pool.fits(first)).isFalse();
        assertThat(pool.fits(second)).isTrue();
        pool.take(second);
        pool.release(first);
        assertThat(pool.fits(first)).isTrue();
        assertThat(pool.fits(second)).isFalse();
    }

    @Test
    void sharesGlobalResources() {
        ResourcePool.Need first = on(GPU_0, global("R", 2));
        ResourcePool.Need second = on(GPU_1, global("R", 1));
        pool.add(first);
        pool.add(second);

        pool.take(first);

        assertThat(pool.fits(second)).isFalse();
        pool.release(first);
        pool.take(second);
        assertThat(pool.fits(second)).as("one of two is left").isTrue();
        assertThat(pool.fits(first)).isFalse();
    }

    @Test
    void countsProcessorsAsDeviceZero() {
        ResourcePool.Need processor = on(Device.CPU, some("R", 1));
        pool.add(processor);
        pool.add(on(GPU_0, some("R", 1)));
        pool.add(on(new Device(Device.Kind.MODEL, 0), some("R", 1)));

        pool.take(processor);

        assertThat(pool.fits(on(GPU_0, some("R", 1)))).isFalse();
        assertThat(pool.fits(on(new Device(Device.Kind.MODEL, 0), some("R", 1))))
                .isFalse();
    }

    @Test
    void takesTheLargerOfTwoFlags() {
        ResourcePool limited =
                new ResourcePool(List.of(limit("R", 4), limit("R", 9, 1), limit("R", 2, 0), limit("S", 5, 3)));
        limited.add(on(GPU_0, some("R", 1)));
        limited.add(on(GPU_1, some("R", 1)));
        limited.add(on(GPU_1, global("S", 1)));

        assertThat(limited.capacity(new ResourcePool.Need.Key("R", 0)))
                .as("no device: 4, this one: 2")
                .isEqualTo(4);
        assertThat(limited.capacity(new ResourcePool.Need.Key("R", 1)))
                .as("no device: 4, this one: 9")
                .isEqualTo(9);
        assertThat(limited.capacity(new ResourcePool.Need.Key("S", ResourcePool.Need.Key.ALL)))
                .as("whatever the device")
                .isEqualTo(5);
    }

    @Test
    void takesTheSmallerOfTwoFlagsForOneDevice() {
        ResourcePool limited = new ResourcePool(List.of(limit("R", 4), limit("R", 3), limit("R", 8)));
        limited.add(on(GPU_0, some("R", 1)));

        assertThat(limited.capacity(new ResourcePool.Need.Key("R", 0))).isEqualTo(3);
    }

    @Test
    void mayHaveMoreThanAnyNeeds() {
        ResourcePool limited = new ResourcePool(List.of(limit("R", 4)));
        ResourcePool.Need need = on(Device.CPU, some("R", 2));
        limited.add(need);

        limited.take(need);

        assertThat(limited.fits(need)).isTrue();
        limited.take(need);
        assertThat(limited.fits(need)).isFalse();
    }

    @Test
    void refusesAnInstanceThatCouldNeverRun() {
        ResourcePool limited = new ResourcePool(List.of(limit("R", 1), limit("S", 8, 1)));

        assertThatThrownBy(() -> limited.add(on(Device.CPU, some("R", 4))))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage(
                        "Resource count for \"R\" is limited to 1 which will prevent scheduling of one or more model"
                                + " instances, the minimum required count is 4");
        assertThatThrownBy(() -> limited.add(on(Device.CPU, some("S", 4))))
                .hasMessage(
                        "Resource count for \"S\" is limited to 0 which will prevent scheduling of one or more model"
                                + " instances, the minimum required count is 4");
        assertThat(limited.capacity(new ResourcePool.Need.Key("R", 0)))
                .as("it is not known")
                .isZero();
    }

    @Test
    void refusesAResourceOfBothKinds() {
        String text = "Resource \"R\" is present as both global and device-specific resource in the model"
                + " configuration.";
        pool.add(on(Device.CPU, some("R", 1)));

        assertThatThrownBy(() -> pool.add(on(GPU_1, global("R", 1)))).hasMessage(text);
        assertThatThrownBy(() -> new ResourcePool(List.of()).add(on(Device.CPU, some("R", 1), global("R", 2))))
                .hasMessage(text);
        ResourcePool other = new ResourcePool(List.of());
        other.add(on(Device.CPU, global("R", 1)));
        assertThatThrownBy(() -> other.add(on(GPU_1, some("R", 1)))).hasMessage(text);
    }

    @Test
    void countsToTheEndOfTheNumbers() {
        ResourcePool.Need all = on(Device.CPU, some("R", Integer.MAX_VALUE));
        pool.add(all);
        pool.take(all);
        pool.take(all);

        assertThat(pool.fits(all)).isFalse();
        assertThat(pool.taken(new ResourcePool.Need.Key("R", 0))).isEqualTo(2L * Integer.MAX_VALUE);
    }

    @Test
    void refusesLimitsThatMakeNoSense() {
        assertThatThrownBy(() -> limit("", 1)).hasMessage("name: empty (expected: the name of a resource)");
        assertThatThrownBy(() -> limit("R", -1)).hasMessage("count: -1 (expected: >= 0)");
        assertThatThrownBy(() -> limit("R", 1, -1)).hasMessage("device: -1 (expected: >= 0)");
    }
}
