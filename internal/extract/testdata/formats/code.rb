# A printer.
class Invoice::Printer < Base
  attr_reader :name

  def initialize(name)
    @name = name
  end

  def self.print_all!
    if x
    end
  end
end

module Util
end
