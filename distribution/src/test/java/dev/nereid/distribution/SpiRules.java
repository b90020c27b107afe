package dev.nereid.distribution;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.codeUnits;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import dev.nereid.spi.Incubating;
import java.util.stream.Stream;

/** Rules of the SPI. Static functions only. */
final class SpiRules {
    private SpiRules() {}

    /** Returns the rule that what is stable does not depend on what may still change. */
    static ArchRule stablePartsUseNoIncubatingTypes() {
        return codeUnits()
                .that()
                .areDeclaredInClassesThat()
                .resideInAPackage("dev.nereid.spi..")
                .and()
                .arePublic()
                .should(new ArchCondition<>("use incubating types only where they are incubating") {
                    @Override
                    public void check(JavaCodeUnit unit, ConditionEvents events) {
                        boolean isIncubating = unit.isAnnotatedWith(Incubating.class) || isIncubating(unit.getOwner());
                        Stream.concat(Stream.of(unit.getReturnType()), unit.getParameterTypes().stream())
                                .flatMap(type -> type.getAllInvolvedRawTypes().stream())
                                .filter(SpiRules::isIncubating)
                                .forEach(type -> events.add(new SimpleConditionEvent(
                                        unit, isIncubating, unit.getFullName() + " uses " + type.getName())));
                    }
                })
                .because("the compatibility of stable parts is checked, that of incubating ones is not");
    }

    private static boolean isIncubating(JavaClass type) {
        return type.isAnnotatedWith(Incubating.class)
                || type.getEnclosingClass().map(SpiRules::isIncubating).orElse(false);
    }
}
