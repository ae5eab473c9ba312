using System;

namespace Shop.Invoices
{
    /// <summary>Prints.</summary>
    [Serializable]
    public partial class Printer : IPrinter
    {
        public string Name { get; set; }

        public async Task<int> PrintAll(IEnumerable<string> names)
        {
            foreach (var n in names) { await Print(n); }
            return 0;
        }

        private static void Print(string n) => Console.WriteLine(n);
    }

    public interface IPrinter { }
}
